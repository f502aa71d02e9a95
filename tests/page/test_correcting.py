"""Corrections and downloads."""
import json
import os
import re

from page_case import READY, PageCase, equal, read, true
from webdriver import ENTER, ESCAPE


class Correcting(PageCase):
    def test_downloads_are_what_the_tool_writes(self):
        self.open()
        for kind, name in (("srt", "srt"), ("vtt", "vtt"), ("txt", "txt")):
            equal(self.download(kind), read(f"{self.words}/expected.{name}"), kind)
        equal(json.loads(self.download("json")), self.expected, "json")
        equal(list(json.loads(self.download("json"))), list(self.expected), "keys in their order")
        true(any(name.startswith("a story's #1") and name.endswith(".srt")
                 for name in os.listdir(self.downloads)), "downloads are named after the recording")
        saved = self.download("html")
        with open(f"{self.words}/saved.html", "w", encoding="utf-8") as file:
            file.write(saved)
        self.open("saved.html")
        equal(self.download("html"), saved, "html")
        equal(self.download("srt"), read(f"{self.words}/expected.srt"), "srt of the saved page")

    def test_every_sample_is_what_the_tool_writes(self):
        folder = os.path.join(self.folder, "samples")
        pages = sorted(name for name in os.listdir(folder) if name.endswith(".html"))
        true(len(pages) >= 30, f"{len(pages)} pages of samples")
        for page in pages:
            stem = os.path.join(folder, page.removesuffix(".html"))
            self.open(page, folder)
            for kind in ("srt", "vtt", "txt"):
                equal(self.written(kind), read(f"{stem}.{kind}"), f"{page}: {kind}")
            equal(json.loads(self.written("json")), json.loads(read(f"{stem}.json")), page)

    def test_odd_texts_are_written_as_the_tool_does(self):
        """The texts and results of Formats.OddTexts, and of Subtitles' marks that are text."""
        marks = [" {\\an8}", " a<b", " &amp;", " --", ">"]
        words = [{"word": word, "start": i / 10, "end": (i + 1) / 10, "probability": 1}
                 for i, word in enumerate(marks)]
        texts = [(0, 1.5, " One --> two & <b>."), (2, 2.5, " \x01\n"),
                 (3, 3, "\x85\u3000a\x1fb\x7f "), (3661.02, 3662.3, " Tab\there.")]
        segments = [{"start": start, "end": end, "text": text, "avg_logprob": -0.25}
                    for start, end, text in texts]
        segments.append({"start": 9, "end": 9, "text": "".join(marks), "words": words})
        self.write("odd.html", dict(self.expected, segments=segments))
        self.open("odd.html")
        equal(self.written("txt"),
              "One --> two & <b>.\na b\nTab\there.\n{\\an8} a<b &amp; -->\n", "txt")
        equal(self.written("srt"),
              "1\n00:00:00,000 --> 00:00:01,500\nOne -> two & <b>.\n\n"
              "2\n00:00:03,000 --> 00:00:03,000\na b\n\n"
              "3\n01:01:01,020 --> 01:01:02,300\nTab\there.\n\n"
              "4\n00:00:00,000 --> 00:00:00,500\n{\\an8} a<b &amp; ->\n\n", "srt")
        equal(self.written("vtt"), "WEBVTT\n\n"
              "00:00.000 --> 00:01.500\nOne -> two &amp; &lt;b>.\n\n"
              "00:03.000 --> 00:03.000\na b\n\n"
              "01:01:01.020 --> 01:01:02.300\nTab\there.\n\n"
              "00:00.000 --> 00:00.500\n{\\an8} a&lt;b &amp;amp; ->\n\n", "vtt")

    def written(self, kind):
        """What a download of that kind holds."""
        return self.browser.run("return hark.formats[arguments[0]].write(hark.transcript)", kind)

    def test_correcting_a_line(self):
        self.open_ready()
        text = "She was so cold and very weary, and she asked him for bread."
        self.correct(4, text)
        equal(self.text(".segment:nth-child(4) .text"), text, "shown")
        equal(self.browser.run("return document.activeElement.className"), "edit", "focus")
        result = json.loads(self.download("json"))
        segment, before = result["segments"][3], self.expected["segments"][3]
        equal(segment["text"], " " + text, "text")
        equal((segment["corrected"], segment["tokens"]), (True, []), "corrected")
        equal("".join(word["word"] for word in segment["words"]), " " + text, "words")
        for word in segment["words"]:
            if word["word"] in (" so", " very", " weary,"):
                equal(word["probability"], 1, word["word"])
            else:
                true(word in before["words"], f"a word that stays has changed: {word}")
        times = [time for word in segment["words"] for time in (word["start"], word["end"])]
        equal(times, sorted(times), "times in their order")
        new = {word["word"]: word for word in segment["words"]}
        tired = next(word for word in before["words"] if word["word"] == " tired,")
        equal(new[" very"]["start"], tired["start"], "the first of two for one")
        equal(new[" weary,"]["end"], tired["end"], "the second of two for one")
        equal(result["text"].count(text), 1, "the whole text")
        for number in (0, 2, 8):
            equal(result["segments"][number], self.expected["segments"][number], "other segments")
        lines = read(f"{self.words}/expected.txt").splitlines()
        equal(self.download("txt").splitlines(), lines[:3] + [text] + lines[4:], "txt")
        srt = self.download("srt").splitlines()
        equal(srt[14], text, "srt")
        self.picture("corrected")
        # The saved page continues where this one is.
        with open(f"{self.words}/saved.html", "w", encoding="utf-8") as file:
            file.write(self.download("html"))
        self.open("saved.html")
        self.browser.wait(READY, "the saved page finds its recording")
        equal(self.text(".segment:nth-child(4) .text"), text, "saved")
        plain = re.search("<noscript>.*</noscript>", read(f"{self.words}/saved.html"), re.S)[0]
        true(text in plain, "the text without JavaScript is corrected")
        equal(self.browser.run("return document.querySelectorAll('.edit')[3].ariaLabel"),
              "corrected \u00b7 Edit the text at 0:07", "the saved page's mark of a correction")
        equal(json.loads(self.download("json")), result, "json of the saved page")

    def test_taking_a_correction_back(self):
        self.open()
        self.correct(2, "Something else.", ESCAPE)
        equal(self.download("txt"), read(f"{self.words}/expected.txt"), "after Escape")
        asks = """const leaving = new Event('beforeunload', {cancelable: true});
            dispatchEvent(leaving);
            return leaving.defaultPrevented"""
        equal(self.browser.run(asks), False, "the page asks before it is left")
        self.correct(2, "Something else.")
        equal(self.browser.run(asks), True, "with a correction, the page asks before it is left")
        true("Something else." in self.download("txt"), "the correction")
        equal(self.browser.run(asks), False, "after a download the page asks before it is left")
        self.browser.click(".segment:nth-child(2) .edit")
        self.picture("correcting")
        self.browser.click(".correction button:nth-child(3)")  # as decoded
        self.browser.click(".correction button[type=submit]")
        equal(json.loads(self.download("json")), self.expected, "as decoded")
        self.correct(9, " ")
        equal(self.download("srt").count(" --> "), 8, "a line without text is not written")
        self.correct(9, "Text again.")
        equal(self.download("txt").splitlines()[-1], "Text again.", "a line with text again")

    def test_correcting_a_language_without_spaces(self):
        words = ["今天", "天", "气", "很", "好", "。"]
        segment = dict(self.expected["segments"][0], text="".join(words), start=0, end=3, words=[
            {"word": word, "start": i / 2, "end": (i + 1) / 2, "probability": 0.5}
            for i, word in enumerate(words)])
        self.write("chinese.html", dict(self.expected, language="zh", segments=[segment]))
        self.open("chinese.html")
        equal(self.text(".text"), "今天天气很好。", "text")
        self.browser.click(".edit")
        self.browser.run("document.activeElement.value = '今天天气非常好。'")
        self.browser.keys(ENTER)
        got = json.loads(self.download("json"))["segments"][0]["words"]
        equal([word["word"] for word in got], ["今天", "天", "气", *"非常好。"], "words")
        equal(got[3], {"word": "非", "start": 1.5, "end": 1.75, "probability": 1}, "a new word")
        equal([got[i] for i in (0, 1, 2, 5, 6)], [segment["words"][i] for i in (0, 1, 2, 4, 5)],
              "words that stay")
