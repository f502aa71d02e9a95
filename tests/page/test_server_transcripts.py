"""hark-serve's page: recordings become transcripts."""
import json
import os

from page_case import FOUND, PAUSED, READY, TIME, WORDS, equal, read, true
from server_case import ENDED, ERROR, HAS_WAVEFORM, LINES, NEWS, ServerCase, sample
from webdriver import ENTER


class ServerTranscripts(ServerCase):
    @property
    def expected_lines(self):
        return read(f"{self.folder}/server/expected.txt").splitlines()

    def test_an_upload_is_what_the_pipe_writes(self):
        self.open_server()
        self.transcribe(self.story)
        self.browser.wait(READY, "the recording is read")
        equal(self.browser.run(LINES), self.expected_lines, "lines")
        equal(self.text("#title"), "story.mp3", "title")
        true("English \u00b7 9 lines" in self.text("#summary"), self.text("#summary"))
        equal(self.browser.run(NEWS), "The transcript is complete: 9 lines", "news")
        self.browser.wait(HAS_WAVEFORM, "a waveform")
        for kind, name in (("srt", "srt"), ("vtt", "vtt"), ("txt", "txt")):
            equal(self.download(kind), read(f"{self.folder}/server/expected.{name}"), kind)
        expected = json.loads(read(f"{self.folder}/server/expected.json"))
        expected["source"] = "story.mp3"
        result = json.loads(self.download("json"))
        equal(result, expected, "json")
        equal(list(result), list(expected), "keys in their order")
        equal(list(result["segments"][0]), list(expected["segments"][0]), "keys of a segment")
        true("story.srt" in os.listdir(self.downloads), "downloads are named after the recording")
        self.picture("server-transcript")

    def test_segments_are_shown_as_they_arrive(self):
        self.open_server()
        self.browser.run(
            """globalThis.seen = [];
            new MutationObserver(() => {
                seen.push([document.querySelectorAll('.segment').length,
                           !document.getElementById('job').hidden,
                           document.getElementById('progress').value]);
            }).observe(document.getElementById('segments'), {childList: true});""")
        self.transcribe(f"{self.folder}/server/long.mp3")
        seen = self.browser.run("return seen")
        counts = [count for count, *_ in seen]
        equal(counts, sorted(counts), "lines are added after those that are shown")
        true(counts[0] < counts[-1] and seen[0][1], f"no line is early: {seen}")
        shares = [share for count, _, share in seen if count > 0]
        equal(shares, sorted(shares), "progress")
        true(shares[0] < 0.5 and shares[-1] > 0.7, f"progress: {shares}")

    def test_a_word_is_played(self):
        self.open_server()
        self.transcribe(self.story)
        self.browser.wait(READY, "the recording is read")
        self.browser.click(".segment:nth-child(2) .word:nth-of-type(9)")
        start = self.spoken[[word["word"] for word in self.spoken].index(" sea.")]["start"]
        at = self.browser.run(TIME)
        true(start <= at < start + 1.5, f"a click on a word at {start} s seeks to {at} s")
        equal(self.browser.run(PAUSED), False, "paused")
        self.browser.wait("return document.querySelector('[aria-current]')", "the current word")

    def test_search_and_correction(self):
        self.open_server()
        self.transcribe(self.story)
        self.browser.fill("#search", "old man")
        equal(self.browser.run(FOUND), "1 of 2", "places")
        self.browser.keys(ENTER)
        equal(self.browser.run(FOUND), "2 of 2", "the next place")
        self.correct(2, "Something else.")
        equal(self.browser.run(LINES)[1], "Something else.", "corrected")
        true("Something else." in self.download("txt"), "the correction is downloaded")
        segment = json.loads(self.download("json"))["segments"][1]
        equal((segment["text"], segment["corrected"]), (" Something else.", True), "json")
        self.correct(3, "Another one.")
        # A question asks whether it may be dropped; the browser's driver accepts it.
        self.transcribe(sample("hat.wav"))
        equal(self.text("#title"), "hat.wav", "the next recording")
        true("Another one." not in self.browser.run(LINES), "lines of the recording before")

    def test_search_finds_lines_that_arrive_later(self):
        self.open_server()
        self.browser.fill("#file", self.story)
        self.browser.wait("return document.querySelectorAll('.segment').length", "a line")
        self.browser.fill("#search", "old man")
        self.browser.wait(ENDED, "the transcript is complete", seconds=120)
        equal(self.browser.run(FOUND), "1 of 2", "places")
        equal(len(self.browser.run("return [...document.querySelectorAll('.hit')]")), 4, "hits")

    def test_language_and_translation(self):
        self.open_server()
        codes = self.browser.run(
            "return [...document.querySelectorAll('#language option')].map(({value}) => value)")
        model, = json.loads(self.server.get("/v1/models"))["data"]
        equal(sorted(codes[1:]), sorted(model["languages"]), "languages")
        father = sample("vater.wav")
        self.browser.fill("#language", "German")
        self.transcribe(father)
        true(self.text("#summary").startswith("German"), self.text("#summary"))
        german = self.browser.run(WORDS)
        self.browser.click("#translate")
        equal(self.browser.run("return document.getElementById('language').disabled"), True,
              "the language of a translation can be chosen")
        self.transcribe(father)
        true(self.browser.run(WORDS) != german, "the translation is the German text")

    def test_a_cancelled_transcription_frees_the_server(self):
        self.open_server()
        self.browser.fill("#file", f"{self.folder}/server/noise.wav")
        self.browser.wait("return document.getElementById('job-text').textContent.includes('Wait')",
                          "the recording is sent")
        while self.server.metric("audio_requests_running") == 0:
            continue
        self.browser.click("#cancel")
        self.browser.wait(ENDED, "the job is over")
        equal(self.browser.run(NEWS), "Cancelled after 0 lines", "news")
        equal(self.browser.run(ERROR), "", "error")
        while self.server.metric("audio_requests_running") == 1:
            continue
        self.transcribe(sample("hat.wav"))

    def test_errors_are_understood(self):
        self.open_server()
        with open(f"{self.folder}/server/notes.txt", "w", encoding="utf-8") as file:
            file.write("no sound")
        self.browser.fill("#file", f"{self.folder}/server/notes.txt")
        error = self.browser.wait(ERROR, "an error")
        true(error.startswith("notes.txt: cannot be decoded: this is no audio"), error)
        true("cannot play notes.txt" in self.text("#reason"), self.text("#reason"))
        self.picture("server-wrong-file")
        self.refused("400")
        small = self.serve("--model", "demo", "--max-upload-mb", "1", "--max-audio-seconds", "1")
        self.open_server(small)
        self.browser.fill("#file", f"{self.folder}/server/noise.wav")
        self.wait_for_error("noise.wav is larger than this server takes.")
        self.browser.fill("#file", sample("hat.wav"))
        self.wait_for_error("longer than 1 seconds")
        self.refused("400", "413")
        small.close()
        self.browser.fill("#file", self.story)
        self.wait_for_error("The server does not answer")
        self.refused("ERR_CONNECTION_REFUSED")

    def wait_for_error(self, text):
        self.browser.wait(f"return document.getElementById('error-text').textContent"
                          f".includes('{text}')", f"the error '{text}'")

    def test_a_recording_that_the_browser_cannot_play(self):
        self.open_server()
        self.transcribe(f"{self.folder}/server/story.aiff")
        equal(self.browser.run(LINES), self.expected_lines, "lines")
        true("cannot play story.aiff" in self.text("#reason"), self.text("#reason"))
