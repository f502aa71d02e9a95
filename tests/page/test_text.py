"""What the page shows, and its search."""
import json

from page_case import FOUND, SHOWN_LINES, WORDS, PageCase, data_of, equal, read, true
from webdriver import ENTER, RIGHT, SHIFT


class Text(PageCase):
    def test_shows_every_word(self):
        self.open_ready()
        equal(self.browser.run(WORDS), [word["word"].strip() for word in self.spoken], "words")
        lines = self.browser.run(
            "return [...document.querySelectorAll('.text')].map((line) => line.innerText)")
        equal(lines, read(f"{self.words}/expected.txt").splitlines(), "lines")
        equal(self.browser.run("return document.title"), self.expected["source"], "title")
        equal(self.text("h1"),
              self.expected["source"], "heading")
        length = self.browser.run("return document.getElementById('audio').duration")
        true(26 < length < 28, f"the recording is {length} s long")
        equal(self.is_hidden("#missing"), True, "a warning")

    def test_shows_confidence_without_colour(self):
        self.open()
        style = """const words = [...document.querySelectorAll('#segments .word')];
            return words.map((word) => getComputedStyle(word).textDecorationStyle + ' ' +
                             getComputedStyle(word).textDecorationLine)"""
        levels = ["wavy underline" if word["probability"] < 0.4 else
                  "dotted underline" if word["probability"] < 0.7 else "solid none"
                  for word in self.spoken]
        true("dotted underline" in levels, "the recording has no word of medium probability")
        equal(self.browser.run(style), levels, "underlines")
        self.browser.click("#show-confidence")
        equal(set(self.browser.run(style)), {"solid none"}, "underlines when they are off")

    def test_without_javascript_it_is_a_text(self):
        self.browser.command("Emulation.setScriptExecutionDisabled", value=True)
        try:
            self.open()
            shown = self.browser.run("return document.body.innerText")
            equal(shown.split("Transcript\n")[1].strip(),
                  read(f"{self.words}/expected.txt").strip(), "text")
            true("Download" not in shown, "buttons that do nothing are shown")
            self.picture("without-javascript")
        finally:
            self.browser.command("Emulation.setScriptExecutionDisabled", value=False)

    def test_silence(self):
        self.open("silence.html")
        true(self.text("#summary").endswith("0 lines"), "the summary of silence")
        self.browser.keys(RIGHT, "n", "e", "/", "a", ENTER)
        equal(self.text("#found"), "not found", "search")
        equal(self.download("vtt"), "WEBVTT\n\n", "vtt")

    def test_texts_of_any_kind_are_texts(self):
        hostile = " </script><img src=x onerror=alert(1)> &lt;b&gt; \"'\u2028\u2029<!--"
        data = json.loads(json.dumps(self.expected))
        data["segments"][0]["text"] = hostile
        data["segments"][0]["words"] = [{"word": hostile, "start": 0, "end": 1, "probability": 1}]
        data["error"] = hostile
        self.write("hostile.html", data)
        self.open("hostile.html")
        equal(self.browser.run(WORDS)[0], hostile.strip(), "word")
        equal(self.text("#broken"),
              "The recording broke: " + hostile, "error")
        equal(self.browser.run("return document.images.length"), 0, "images")
        equal(json.loads(self.download("json")), data, "json")
        saved = self.download("html")
        equal(data_of(saved), data, "the saved page's transcript")
        equal(saved.count("</script>"), 2, "ends of scripts")

    def test_search(self):
        self.open_ready()
        self.browser.fill("#search", "OLD män")
        equal(self.browser.run(FOUND), "1 of 2", "places")
        hits = "return [...document.querySelectorAll('.hit')].map((word) => word.textContent)"
        equal(self.browser.run(hits), ["old", "man,", "old", "man"], "hits")
        now = """return document.querySelector('.now').closest('li')
            .querySelector('.time').textContent"""
        equal(self.browser.run(now), "0:00", "first place")
        self.browser.keys(ENTER)
        equal(self.browser.run(now), "0:12", "second place")
        equal(self.browser.run(FOUND), "2 of 2", "second place")
        self.browser.keys(ENTER)
        equal(self.browser.run(FOUND), "1 of 2", "round")
        self.browser.keys(SHIFT + ENTER)
        equal(self.browser.run(FOUND), "2 of 2", "back")
        equal(self.browser.run(SHOWN_LINES), 9, "lines")
        self.browser.click("#only")
        equal(self.browser.run(SHOWN_LINES), 2, "lines with a match")
        self.picture("search")
        # Across a line's end.
        self.browser.run("document.getElementById('search').value = ''")
        self.browser.fill("#search", "sea. one day")
        equal(self.browser.run(FOUND), "1 of 1", "across lines")
        equal(self.browser.run(SHOWN_LINES), 2, "lines with a part of it")
        self.browser.fill("#search", "zzz")
        equal(self.browser.run(FOUND), "not found", "nothing")
        equal(self.browser.run(SHOWN_LINES), 9, "lines if nothing is found")
