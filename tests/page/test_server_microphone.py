"""hark-serve's page: the microphone, which is a file here."""
import json
import os
import struct
import tempfile
import time

from page_case import PAUSED, READY, TIME, WORDS, equal, true
from server_case import ENDED, ERROR, HAS_WAVEFORM, NEWS, ServerCase
from webdriver import ENTER

RECORDING = "return document.getElementById('job-text').textContent.startsWith('Recording')"
EXPECTED = ["captain", "walked", "harbour"]


class ServerMicrophone(ServerCase):
    @classmethod
    def setUpClass(cls):
        voice = os.path.join(os.environ["HARK_PAGE_FOLDER"], "server/voice.wav")
        cls.browser_arguments = ["--use-fake-device-for-media-stream",
                                 "--use-fake-ui-for-media-stream",
                                 f"--use-file-for-fake-audio-capture={voice}%noloop"]
        super().setUpClass()

    def record(self, seconds):
        self.browser.fill("#language", "English")
        self.browser.click("#record")
        self.browser.wait(RECORDING, "the microphone records")
        equal(self.browser.run("return document.activeElement.id"), "stop", "focus")
        time.sleep(seconds)

    def test_what_is_said_becomes_a_transcript(self):
        self.open_server()
        self.browser.run(
            """globalThis.partials = [];
            new MutationObserver(() => partials.push(document.getElementById('partial').innerText))
                .observe(document.getElementById('in-doubt'), {childList: true});""")
        self.browser.fill("#language", "English")
        self.browser.click("#record")
        self.browser.wait(RECORDING, "the microphone records")
        loudness = """const level = document.getElementById('level').value;
            return globalThis.loudest = Math.max(globalThis.loudest ?? 0, level)"""
        end = time.monotonic() + 8
        while time.monotonic() < end:
            loudest = self.browser.run(loudness)
            time.sleep(0.1)
        true(loudest > 0.05, f"the loudest sample is {loudest}")
        self.picture("server-microphone")
        self.browser.click("#stop")
        self.browser.wait(ENDED, "the transcript is complete", seconds=60)
        equal(self.browser.run(ERROR), "", "error")
        equal(self.browser.run("return document.activeElement.id"), "record", "focus")
        true(self.browser.run(NEWS).startswith("The transcript is complete"), "news")
        true(any(self.browser.run("return partials")), "no text was shown before it was final")
        words = self.browser.run(WORDS)
        spoken = [word.strip(".,").lower() for word in words]
        for word in EXPECTED:
            true(word in spoken, f"'{word}' is not in {words}")
        # The samples are the recording.
        self.browser.wait(READY, "the recording is read")
        self.browser.wait(HAS_WAVEFORM, "a waveform")
        duration = self.browser.run("return document.getElementById('audio').duration")
        true(7 < duration < 12, f"{duration} s were recorded")
        start = self.browser.run("return hark.editor.transcript.words[3].start")
        self.browser.click(".word:nth-of-type(4)")
        at = self.browser.run(TIME)
        true(start <= at < start + 1.5, f"a click on a word at {start} s seeks to {at} s")
        equal(self.browser.run(PAUSED), False, "paused")
        segment = json.loads(self.download("json"))["segments"][0]
        equal(sorted(segment), ["end", "id", "start", "text", "words"], "keys of a segment")
        self.browser.click("#save-recording")
        wav = self.saved("microphone.wav")
        equal((wav[:4], wav[8:16]), (b"RIFF", b"WAVEfmt "), "the recording's head")
        channels, rate = struct.unpack("<HI", wav[22:28])
        equal((channels, rate), (1, 16000), "channels and rate")
        true(abs((len(wav) - 44) / 32000 - duration) < 0.01, "the recording's length")
        self.picture("server-recorded")

    def saved(self, name):
        path = os.path.join(self.downloads, name)
        end = time.monotonic() + 10
        while not os.path.exists(path) and time.monotonic() < end:
            time.sleep(0.05)
        with open(path, "rb") as file:
            return file.read()

    def test_with_a_key(self):
        with tempfile.NamedTemporaryFile("w") as keys:
            keys.write("a key (2)%\n")
            keys.flush()
            server = self.serve("--model", "demo", "--api-keys", keys.name)
        self.browser.open(server.url + "/")
        self.browser.wait("return document.getElementById('key').open", "a key is asked for")
        self.browser.keys(*"a key (2)%", ENTER)
        self.browser.wait("return !document.getElementById('record').disabled", "the models")
        self.refused("401")
        self.record(1)
        self.browser.click("#stop")
        self.browser.wait(ENDED, "the transcript is complete", seconds=60)
        equal(self.browser.run(ERROR), "", "error")

    def test_cancelling_keeps_what_was_recorded(self):
        self.open_server()
        self.record(2)
        self.browser.click("#cancel")
        self.browser.wait(ENDED, "the recording is over")
        equal(self.browser.run(ERROR), "", "error")
        true(self.browser.run(NEWS).startswith("Cancelled"), "news")
        self.browser.wait(READY, "what was recorded can be played")

    def test_a_browser_that_does_not_resample(self):
        self.open_server()
        self.browser.run(
            """const Known = AudioContext;
            globalThis.AudioContext = class extends Known {
                createMediaStreamSource(stream) {
                    if (this.sampleRate === 16000) throw new DOMException('', 'NotSupportedError');
                    return super.createMediaStreamSource(stream);
                }
            };""")
        self.browser.click("#record")
        self.browser.wait(RECORDING, "the microphone records")
        time.sleep(2)
        self.browser.click("#stop")
        self.browser.wait(ENDED, "the transcript is complete", seconds=60)
        equal(self.browser.run(ERROR), "", "error")
        self.browser.wait(READY, "the recording is read")
        duration = self.browser.run("return document.getElementById('audio').duration")
        true(1.5 < duration < 4, f"{duration} s were recorded")

    def test_a_microphone_that_is_refused(self):
        self.open_server()
        self.browser.run("""navigator.mediaDevices.getUserMedia = async () => {
            throw new DOMException('', arguments[0]) };""", "NotAllowedError")
        self.browser.click("#record")
        equal(self.browser.wait(ERROR, "an error"), "The browser was not allowed to record.",
              "error")
        equal(self.browser.run(ENDED), True, "the job is over")
