"""hark-serve's page: keys, requests, the keyboard, a screen reader, and how it looks."""
import re
import tempfile
from urllib.parse import urlsplit

from page_case import FOCUSED, READY, equal, true
from server_case import ERROR, HAS_WAVEFORM, ServerCase, sample
from webdriver import ENTER, RIGHT


class ServerPage(ServerCase):
    def test_a_key_is_asked_for(self):
        with tempfile.NamedTemporaryFile("w") as keys:
            keys.write("first\nsecond (2)%\n")
            keys.flush()
            server = self.serve("--model", "demo", "--chat-template", self.template.name,
                                "--api-keys", keys.name)
        self.browser.open(server.url + "/")
        opened = "return document.getElementById('key').open"
        self.browser.wait(opened, "a key is asked for")
        self.picture("server-key")
        self.browser.keys("\ue00c")
        equal(self.browser.wait(ERROR, "an error"), "This server needs a key.", "error")
        self.browser.click("#enter-key")
        self.browser.wait(opened, "the key is asked for again")
        self.browser.keys(*"wrong", ENTER)
        self.browser.wait("return document.getElementById('key-text').textContent"
                          ".includes('not accepted')", "a wrong key is refused")
        self.browser.keys(*"second (2)%", ENTER)
        self.browser.wait("return document.getElementById('model').value === 'demo'", "the models")
        equal(self.browser.run(opened), False, "the dialog is open")
        self.refused("401")
        kept = "return [Object.values(sessionStorage), localStorage.length, document.cookie]"
        equal(self.browser.run(kept), [["second (2)%"], 0, ""], "where the key is kept")
        hat = sample("hat.wav")
        self.transcribe(hat)
        self.browser.fill("#question", "Who?")
        self.browser.click("#send")
        self.browser.wait("return document.querySelector('.assistant')?.ariaBusy === 'false'",
                          "an answer", seconds=60)
        # The tab keeps it.
        self.open_server(server)
        self.transcribe(hat)
        self.browser.run("sessionStorage.clear()")

    def test_requests_go_to_the_server_alone(self):
        self.open_server()
        self.browser.requested()
        self.open_server()
        self.transcribe(self.story)
        self.browser.wait(READY, "the recording is read")
        asked = self.browser.requested()
        true(any(address.endswith("/v1/audio/transcriptions") for address in asked), asked)
        for address in asked:
            true(address.startswith((self.server.url + "/", "data:", "blob:")),
                 f"a request for {address}")
        refused = self.browser.run_async(
            """const [address, done] = arguments, refused = [];
            document.addEventListener('securitypolicyviolation', (event) => {
                refused.push(event.effectiveDirective);
                if (refused.length === 7) done(refused.sort());
            });
            new Image().src = address;
            fetch(address).catch(() => {});
            const add = (name, properties) =>
                document.body.append(Object.assign(document.createElement(name), properties));
            add('iframe', {src: address});
            add('script', {src: address});
            add('script', {textContent: 'globalThis.bad = true'});
            add('style', {textContent: 'body { display: none }'});
            add('link', {rel: 'stylesheet', href: address});""", "http://127.0.0.1:9/")
        equal(refused, ["connect-src", "frame-src", "img-src", "script-src-elem", "script-src-elem",
                        "style-src-elem", "style-src-elem"],
              "what the content security policy refuses")
        equal(self.browser.run("return globalThis.bad"), None, "a script within the page ran")
        self.browser.log("browser")  # these refusals

    def test_the_server_has_an_address_of_its_own_folder(self):
        """Through a proxy that gives it a folder: all addresses are relative."""
        page = self.server.get("/")
        for address in re.findall(r'(?:src|href)="([^"#]+)"', page):
            true(not urlsplit(address).path.startswith("/") or address == "data:,", address)

    def test_keyboard_and_tab(self):
        self.open_server()
        reached = self.tab_stops()
        for what in ("file", "record", "model", "language", "translate"):
            true(what in reached, f"Tab does not reach {what}: {reached}")
        self.transcribe(self.story)
        self.browser.wait(READY, "the recording is read")
        self.browser.run("document.activeElement.blur()")
        reached = self.tab_stops()
        for what in ("audio", "search", "srt", "json", "speed", "time", "edit", "messages",
                     "question", "send"):
            true(what in reached, f"Tab does not reach {what}: {reached}")
        equal(sum(what.startswith("word") for what in reached), 1, "words that Tab stops at")
        self.browser.run("document.activeElement.blur()")
        self.browser.keys(RIGHT)
        equal(self.browser.run(FOCUSED), "was", "an arrow goes to the word after that of Tab")
        self.browser.keys(" ")
        self.browser.wait("return !document.getElementById('audio').paused", "space plays")
        self.browser.keys(" ", "/")
        equal(self.browser.run("return document.activeElement.id"), "search", "/ searches")
        self.browser.click("#question")
        self.browser.keys("/", " ", "n")
        equal(self.browser.run("return document.activeElement.value"), "/ n",
              "keys are text while a question is written")

    def test_accessible_names(self):
        self.open_server()
        self.transcribe(self.story)
        roles = self.accessible_names(("textbox", "link", "log", "region"), ("log",))
        for name in ("New transcript", "Recording and search", "Chat about the transcript"):
            true(name in roles["region"], f"no region is called {name}: {roles['region']}")

    def test_looks(self):
        for scheme, dark in (("light", False), ("dark", True)):
            self.browser.color_scheme(scheme)
            for width, height in ((1280, 800), (360, 720)):
                self.browser.size(width, height)
                self.open_server()
                self.picture(f"server-start-{width}-{scheme}")
                self.fits(width, scheme)
                self.transcribe(self.story)
                self.browser.wait(HAS_WAVEFORM, "a waveform")
                self.browser.fill("#search", "old man")
                self.browser.run("hark.editor.player.seek(12.5); scrollTo(0, 0)")
                self.browser.fill("#question", "Who is old?")
                self.browser.click("#send")
                self.browser.wait("return document.getElementById('stop-answer').hidden",
                                  "the answer has ended", seconds=60)
                self.browser.run("scrollTo(0, 0)")
                self.picture(f"server-{width}-{scheme}")
                self.fits(width, scheme)
                self.browser.run("document.getElementById('question').scrollIntoView()")
                self.picture(f"server-chat-{width}-{scheme}")
                back = self.browser.run("return getComputedStyle(document.body).backgroundColor")
                brightness = sum(map(int, re.findall(r"\d+", back)[:3]))
                equal(brightness < 200, dark, f"{scheme}: a background of {back}")
        self.browser.color_scheme("light")
