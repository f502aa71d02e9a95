"""Requests, contrast and sizes, and three hours of words."""
import re
import statistics
import time
from urllib.parse import quote

from page_case import READY, TIME, PageCase, equal, true
from webdriver import RIGHT


class Looks(PageCase):
    def test_requests_nothing_else(self):
        self.browser.requested()
        self.open_ready()
        self.browser.keys(RIGHT, " ")
        self.browser.wait("return document.getElementById('audio').currentTime > 1", "it plays")
        own = "file://" + quote(self.words)
        asked = self.browser.requested()
        true(any(address.endswith(".wav") for address in asked), f"no recording in {asked}")
        for address in asked:
            true(address.startswith((own, "data:", "blob:")), f"a request for {address}")
        refused = self.browser.run_async(
            """const [address, done] = arguments, refused = [];
            document.addEventListener('securitypolicyviolation', (event) => {
                refused.push(event.effectiveDirective);
                if (refused.length === 5) done(refused.sort());
            });
            new Image().src = address;
            fetch(address).catch(() => {});
            document.body.append(Object.assign(document.createElement('iframe'), {src: address}));
            document.head.append(Object.assign(document.createElement('script'), {src: address}));
            document.head.append(Object.assign(document.createElement('link'),
                                               {rel: 'stylesheet', href: address}));""",
            "http://127.0.0.1:9/")
        equal(refused, ["connect-src", "frame-src", "img-src", "script-src-elem", "style-src-elem"],
              "what the content security policy refuses")
        self.browser.log("browser")  # these refusals

    def test_looks(self):
        for scheme, dark in (("light", False), ("dark", True)):
            self.browser.color_scheme(scheme)
            for width, height in ((1280, 800), (360, 720)):
                self.browser.size(width, height)
                self.open_ready()
                self.browser.fill("#search", "old man")
                self.browser.run("hark.player.seek(12.5)")
                self.picture(f"{width}-{scheme}")
                back = self.browser.run("return getComputedStyle(document.body).backgroundColor")
                brightness = sum(map(int, re.findall(r"\d+", back)[:3]))
                equal(brightness < 200, dark, f"{scheme}: a background of {back}")
                self.fits(width, scheme)
                bar = self.browser.run("return document.getElementById('player').offsetHeight")
                true(bar < height * 0.25, f"at {width} px the bar at the top is {bar} px high")
        self.browser.color_scheme("light")

    def test_three_hours(self):
        """37,758 words, and a recording of that length."""
        data, length, segments = dict(self.expected), 26.6, []
        for copy in range(406):
            for segment in self.expected["segments"]:
                moved = lambda part: dict(part, start=round(part["start"] + copy * length, 3),
                                          end=round(part["end"] + copy * length, 3))
                segments.append(dict(moved(segment), id=len(segments),
                                     words=[moved(word) for word in segment["words"]]))
        data["source"] = "long.flac"
        data["segments"] = segments
        data["text"] = self.expected["text"] * 406
        self.write("long.html", data)
        opened = []
        for _ in range(3):
            self.open("long.html")
            opened.append(self.browser.run(
                "return performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd"))
        words = self.browser.run("return document.querySelectorAll('.word').length")
        equal(words, 406 * len(self.spoken), "words")
        timed = """const times = [];
            for (const value of arguments[0]) {
                const start = performance.now();
                CALL;
                document.body.offsetHeight;  // computes the layout
                times.push(performance.now() - start);
            }
            return times"""
        typed = self.browser.run(timed.replace("CALL", """
            document.getElementById('search').value = value;
            document.getElementById('search').dispatchEvent(new Event('input'))"""),
            ["e", "ev", "very", "old man", ""])
        moved = self.browser.run(timed.replace("CALL", "hark.view.follow(value, true)"),
                                 [i * 0.25 for i in range(40000)])
        spoken = [word for segment in segments for word in segment["words"]
                  if word["start"] <= 9999.75]
        equal(self.text("[aria-current]"),
              spoken[-1]["word"].strip(), "the word at 9,999.75 s")
        self.browser.wait(READY, "a recording of three hours is read")
        self.browser.run("hark.view.moveTo(hark.transcript.words[30000])")
        seen = """const {top} = document.activeElement.getBoundingClientRect();
            return top > 0 && top < innerHeight"""
        self.browser.wait(seen, "a word far down is shown")
        self.browser.keys(" ")
        time.sleep(1)
        self.browser.keys(" ")
        true(self.browser.run(seen), "the word is still shown after a second of playing")
        at = self.browser.run(TIME)
        start = (30000 // len(self.spoken)) * length
        true(start < at < start + length + 2, f"it plays at {at} s, not after {start} s")
        self.picture("three-hours")
        start = time.monotonic()
        self.correct(3000, "Corrected.")
        equal(self.text(".segment:nth-child(3000) .text"),
              "Corrected.", "a correction far down")
        corrected = time.monotonic() - start
        equal(self.download("srt").count(" --> "), len(segments), "cues")
        self.browser.fill("#file", f"{self.words}/long.flac")
        self.browser.wait("return document.getElementById('no-waveform').textContent.includes("
                          "'longer than 2 hours')", "no waveform of three hours")
        print(f"\n{words} words: opened in {statistics.median(opened):.0f} ms; a letter typed in "
              f"the search at most {max(typed):.0f} ms;\nthe current word found and marked in "
              f"{statistics.mean(moved):.3f} ms, at most {max(moved):.0f} ms; a line corrected "
              f"in {corrected * 1000:.0f} ms")
