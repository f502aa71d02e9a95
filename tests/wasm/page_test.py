"""The page of wasm/page in Chromium: recordings that are chosen and dropped, a file that is none. tests/wasm.sh
says where the page and the expected texts are."""
import base64
import functools
import http.server
import os
import tempfile
import threading
import unittest

from webdriver import Browser

SAMPLES = os.path.join(os.path.dirname(__file__), "../../samples")
ENDED = "return !document.body.classList.contains('working')"
TEXTS = "return [...document.querySelectorAll('#lines td:last-child')].map((cell) => cell.textContent)"
TIMES = "return [...document.querySelectorAll('#lines td:first-child')].map((cell) => cell.textContent)"
DROP = """
    const bytes = Uint8Array.from(atob(arguments[0]), (letter) => letter.charCodeAt(0));
    const data = new DataTransfer();
    data.items.add(new File([bytes], arguments[1]));
    dispatchEvent(new DragEvent('drop', {dataTransfer: data, cancelable: true}));
    return new Promise((resolve) => setTimeout(resolve, 100));"""


def sample(name):
    return os.path.abspath(os.path.join(SAMPLES, name))


class Handler(http.server.SimpleHTTPRequestHandler):
    methods = set()

    def parse_request(self):
        parsed = super().parse_request()
        self.methods.add(self.command)
        return parsed

    def log_message(self, *_):
        pass


class PageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        handler = functools.partial(Handler, directory=os.environ["HARK_WASM_PAGE"])
        cls.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=cls.server.serve_forever, daemon=True).start()
        cls.addClassCleanup(cls.server.shutdown)
        downloads = tempfile.TemporaryDirectory()
        cls.addClassCleanup(downloads.cleanup)
        cls.browser = Browser(downloads.name, width=900, height=800)
        cls.addClassCleanup(cls.browser.close)

    def setUp(self):
        self.url = f"http://127.0.0.1:{self.server.server_port}/"
        self.browser.open(self.url)

    def ended(self):
        self.browser.wait(ENDED, "the recording is transcribed", seconds=120)

    def expect(self, name):
        self.ended()
        with open(os.path.join(os.environ["HARK_WASM_TEXTS"], f"{name}.txt"), encoding="utf-8") as file:
            self.assertEqual(self.browser.run(TEXTS), file.read().splitlines())
        self.assertTrue(self.browser.run("return document.getElementById('error').hidden"))

    def screenshot(self, name):
        self.browser.screenshot(os.path.join(os.environ["HARK_WASM_SCREENSHOTS"], f"{name}.png"))

    def test_chosen(self):
        self.browser.fill("#file", sample("answer.wav"))
        self.expect("answer.wav")

    def test_dropped(self):
        with open(sample("story.mp3"), "rb") as file:
            self.browser.run(DROP, base64.b64encode(file.read()).decode(), "story.mp3")
        self.browser.wait(TEXTS + ".length", "the first line", seconds=120)
        self.expect("story.mp3")
        self.assertEqual(self.browser.run(TIMES)[0], "0:00.0")
        self.assertIn("26.7 s of sound", self.browser.run("return document.getElementById('status').textContent"))
        self.screenshot("light")
        self.browser.color_scheme("dark")
        self.screenshot("dark")

    def test_not_a_recording(self):
        self.browser.fill("#file", os.path.abspath(__file__))
        self.ended()
        self.assertEqual(self.browser.run("return document.getElementById('error').textContent"),
                         "page_test.py: this browser cannot decode it")
        self.screenshot("error")

    def test_nothing_is_uploaded(self):
        self.browser.log("performance")
        self.browser.fill("#file", sample("answer.wav"))
        self.expect("answer.wav")
        for url in self.browser.requested():
            self.assertTrue(url.startswith((self.url, "data:")), url)
        self.assertEqual(Handler.methods, {"GET"})


if __name__ == "__main__":
    unittest.main()
