"""What the tests of hark-serve's page share: a server, and a browser that has its page."""
import json
import os
import re
import subprocess
import tempfile
import urllib.request

from page_case import PageCase, equal

RECORDINGS = os.path.join(os.path.dirname(__file__), "../../samples")
ENDED = "return document.getElementById('job').hidden"
NEWS = "return document.getElementById('news').textContent"
ERROR = "return document.getElementById('error').hidden ? '' : " \
    "document.getElementById('error-text').textContent"
HAS_WAVEFORM = "return !document.getElementById('waveform').hidden"
LINES = "return [...document.querySelectorAll('.text')].map((line) => line.innerText)"

# The demonstration model has no template of its own.
TEMPLATE = """{% for message in messages %}{{ message.role }}: {{ message.content }}
{% endfor %}assistant:"""


def sample(name):
    return os.path.abspath(os.path.join(RECORDINGS, name))


class Server:
    """A hark-serve that runs."""

    def __init__(self, *arguments):
        self.process = subprocess.Popen(
            ["hark-serve", "--port", "0", "--threads", "1", "--only-named", *arguments], stderr=subprocess.PIPE,
            text=True)
        for line in self.process.stderr:
            if line.startswith("listening on "):
                self.url = line.split()[-1]
                break
        else:
            raise RuntimeError("hark-serve: ended before it told its address")

    def close(self):
        self.process.terminate()
        self.process.wait()
        self.process.stderr.close()

    def get(self, path):
        with urllib.request.urlopen(self.url + path, timeout=60) as reply:
            return reply.read().decode()

    def metric(self, name):
        return float(re.search(rf"^hark_{name}{{.*}} (\S+)$", self.get("/metrics"), re.M)[1])


class ServerCase(PageCase):
    """Tests with a server of both demonstration models, the language model with a template."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.template = tempfile.NamedTemporaryFile("w", suffix=".jinja")
        cls.template.write(TEMPLATE)
        cls.template.flush()
        cls.addClassCleanup(cls.template.close)
        cls.server = cls.serve("--model", "demo", "--chat-template", cls.template.name)
        cls.story = sample("story.mp3")

    @classmethod
    def serve(cls, *arguments):
        server = Server(*arguments)
        cls.addClassCleanup(server.close)
        return server

    def open_server(self, server=None):
        self.browser.open((server or self.server).url + "/")
        self.browser.wait("return globalThis.hark?.editor && document.readyState === 'complete'",
                          "the page is there")
        self.browser.run_async("hark.begun.then(arguments[0])")

    def transcribe(self, path):
        """Chooses a file, and waits for its whole transcript."""
        self.browser.fill("#file", path)
        self.browser.wait(ENDED, "the transcript is complete", seconds=120)
        equal(self.browser.run(ERROR), "", "error")

    def refused(self, *words):
        """The errors on the console since the last call: each has one of the words."""
        for entry in self.browser.log("browser"):
            if entry["level"] == "SEVERE" and not any(word in entry["message"] for word in words):
                raise AssertionError(f"an error on the console: {entry['message']}")

    def posted(self, path):
        """The bodies of JSON that were posted to that path since the last call."""
        bodies = []
        for entry in self.browser.log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] != "Network.requestWillBeSent":
                continue
            request = message["params"]["request"]
            if request["url"].endswith(path) and "postData" in request:
                bodies.append(json.loads(request["postData"]))
        return bodies
