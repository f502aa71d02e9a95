"""The recording: its words, its waveform, and what happens if it is missing."""
import functools
import http.server
import json
import os
import re
import threading
import time

from page_case import PAUSED, READY, TIME, WORDS, PageCase, equal, read, true


class Playing(PageCase):
    def test_a_click_on_a_word_plays_from_it(self):
        self.open_ready()
        self.browser.click(".segment:nth-child(2) .word:nth-of-type(9)")
        number = [word["word"] for word in self.spoken].index(" sea.")
        start = self.spoken[number]["start"]
        at = self.browser.run(TIME)
        true(start <= at < start + 1.5, f"a click on a word at {start} s seeks to {at} s")
        equal(self.browser.run(PAUSED), False, "paused")
        current = "return document.querySelector('[aria-current]')?.textContent"
        self.browser.wait(f"{current} === 'One'", "the words of the next line become current")
        equal(self.browser.run("return document.querySelectorAll('[aria-current]').length"), 1,
              "current words")
        self.browser.click(".segment:nth-child(4) .time")
        at, start = self.browser.run(TIME), self.expected["segments"][3]["start"]
        true(start <= at < start + 1.5, f"a click on a time of {start} s seeks to {at} s")

    def test_speed(self):
        self.open_ready()
        self.browser.fill("#speed", "1.5")
        speed = self.browser.run("return document.getElementById('audio').playbackRate")
        equal(speed, 1.5, "speed")

    def test_each_word_is_current_at_its_time(self):
        self.open_ready()
        self.words_are_current()
        # As --clip may order them.
        self.write("backwards.html", dict(self.expected, segments=self.expected["segments"][::-1]))
        self.open("backwards.html")
        self.browser.wait(READY, "the recording next to the page is read")
        self.words_are_current()

    def words_are_current(self):
        got = self.browser.run(
            """const found = [];
            for (const seconds of arguments[0]) {
                hark.player.seek(seconds);
                found.push(document.querySelector('[aria-current]')?.textContent ?? '');
            }
            return found""", [(word["start"] + word["end"]) / 2 for word in self.spoken])
        for number, word in enumerate(self.spoken):
            if word["end"] > word["start"]:
                equal(got[number], word["word"].strip(), f"the word at {word['start']} s")
        equal(self.browser.run("hark.player.seek(26.6);"
                               "return document.querySelectorAll('[aria-current]').length"), 0,
              "current words in the silence at the end")

    def test_the_page_follows_what_is_spoken(self):
        self.browser.size(360, 500)
        self.open_ready()
        self.browser.run("document.querySelector('.segment').scrollIntoView();"
                         "hark.view.follow(0.5, true)")
        seen = """const row = document.querySelector('[aria-current]').closest('li');
            const {top, bottom} = row.getBoundingClientRect();
            return top >= document.getElementById('player').getBoundingClientRect().bottom - 1 &&
                bottom <= innerHeight + 1"""
        for segment in self.expected["segments"]:
            self.browser.run("hark.view.follow(arguments[0], true)",
                             segment["words"][0]["start"] + 0.01)
            self.browser.wait(seen, f"the line at {segment['start']} s is seen")
        # Not while it is paused, nor after a reader has gone elsewhere.
        self.browser.run("hark.view.follow(0.5, false)")
        time.sleep(0.5)
        equal(self.browser.run(seen), False, "a jump of the paused recording moves the page")
        self.browser.run("hark.view.follow(4, true)")
        time.sleep(0.5)
        equal(self.browser.run(seen), False, "the page moves a reader who is elsewhere")

    def test_asks_for_a_recording_that_is_missing(self):
        self.open(folder=os.path.join(self.folder, "segments"))
        self.browser.wait("return !document.getElementById('missing').hidden", "a warning")
        true("is not next to this page" in self.text("#reason"), "the warning's reason")
        self.picture("missing")
        self.browser.fill("#file", self.recording)
        self.browser.wait(READY, "the chosen recording is read")
        equal(self.is_hidden("#missing"), True, "hidden")
        self.open("pipe.html")
        true("came through a pipe" in self.browser.wait(
            "return document.getElementById('reason').textContent", "a warning"), "reason")
        self.browser.fill("#file", os.path.join(self.words, "page.html"))
        self.browser.wait("return document.getElementById('reason').textContent.includes("
                          "'cannot play page.html')", "a file that is no recording is named")

    def test_segments_are_clicked_if_words_have_no_times(self):
        folder = os.path.join(self.folder, "segments")
        data = json.loads(read(f"{folder}/page.json"))
        self.open(folder=folder)
        equal(self.browser.run(WORDS), [segment["text"].strip() for segment in data["segments"]],
              "segments")
        true("without --word-timestamps" in self.text("#summary"), "the page does not say why")
        self.browser.click(".segment:nth-child(3) .word")
        equal(round(self.browser.run(TIME), 3), data["segments"][2]["start"], "time")
        equal(self.download("srt"), read(f"{folder}/page.srt"), "srt")
        equal(json.loads(self.download("json")), data, "json")

    def test_waveform_of_a_chosen_file(self):
        self.open_ready()
        equal(self.is_hidden("#waveform"), True, "hidden")
        true("may only play it" in self.text("#no-waveform"), "why there is none")
        self.browser.fill("#file", self.recording)
        self.has_waveform()
        self.picture("waveform")

    def test_waveform_over_http(self):
        handler = functools.partial(Handler, directory=self.words)
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            root = f"http://127.0.0.1:{server.server_port}/"
            self.browser.requested()
            self.browser.open(root + "page.html")
            self.has_waveform()
            for address in self.browser.requested():
                true(address.startswith((root, "data:", "blob:")), f"a request for {address}")
        finally:
            server.shutdown()
            server.server_close()

    def has_waveform(self):
        drawn = """const canvas = document.getElementById('waveform');
            if (canvas.hidden || !canvas.width) return 0;
            const {data} = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
            let pixels = 0;
            for (let i = 3; i < data.length; i += 4) pixels += data[i] > 0;
            return pixels / (data.length / 4)"""
        share = self.browser.wait(drawn, "a waveform")
        true(0.02 < share < 0.9, f"{share} of the waveform is drawn")
        self.browser.click("#waveform")  # in its middle
        at = self.browser.run(TIME)
        true(abs(at - 13.3) < 0.3, f"a click in the middle of the waveform seeks to {at} s")


class Handler(http.server.SimpleHTTPRequestHandler):
    """A server of files that can send a part of one, as browsers need to seek."""

    def do_GET(self):
        wanted = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if not wanted:
            return super().do_GET()
        with open(self.translate_path(self.path), "rb") as file:
            data = file.read()
        begin, end = int(wanted[1]), int(wanted[2] or len(data) - 1)
        self.send_response(206)
        self.send_header("Content-Type", self.guess_type(self.path))
        self.send_header("Content-Range", f"bytes {begin}-{end}/{len(data)}")
        self.send_header("Content-Length", str(end + 1 - begin))
        self.end_headers()
        self.wfile.write(data[begin:end + 1])

    def log_message(self, *_):
        pass
