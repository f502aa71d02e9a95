"""What the stories share: a mock of Lambda, a package of hark, and hark lambda itself in a home of its own."""
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.request
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
HERE = SOURCE / "tests/cloud"
LAMBDA = SOURCE / "pipelines/lambda.sh"
KEY = "secret_test_key"
PATIENCE = 600  # seconds, after which something hangs

# A shell ignores SIGINT in what it starts in the background, and so would the commands here.
signal.signal(signal.SIGINT, signal.default_int_handler)


def launch_fault(do, **more):
    return {"on": "POST /instance-operations/launch", "do": do, **more}


class Story(unittest.TestCase):
    speed = 100  # times as fast as life

    def begin(self, **script):
        self.folder = Path(tempfile.mkdtemp(prefix="hark-cloud-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        # Whatever a failed story has left running there ends, the instances' own deadlines too.
        self.addCleanup(self.end_machines, self.folder)
        (self.folder / "home").mkdir()
        self.clock = f"{int(time.time())} {self.speed}"
        self.environ = {
            "HOME": str(self.folder / "home"), "LC_ALL": "C.UTF-8", "LAMBDA_API_KEY": KEY,
            "PATH": f"{HERE}/bin:{os.environ['HARK_CLOUD_BIN']}:/usr/bin:/bin", "HARK_LAMBDA_CLOCK": self.clock,
            "HARK_MOCK": str(self.folder), "HARK_MOCK_THERE": str(HERE / "there")}
        mock = subprocess.Popen([sys.executable, HERE / "mock.py", self.folder, json.dumps(script)],
                                stdout=subprocess.PIPE, text=True, env={**os.environ, **self.environ})
        self.addCleanup(self.end_mock, mock)
        self.url = f"http://127.0.0.1:{mock.stdout.readline().strip()}"
        self.environ["HARK_LAMBDA_URL"] = self.url
        self.out = self.folder / "out"

    def end_mock(self, mock):
        mock.kill()
        mock.wait()
        mock.stdout.close()

    def end_machines(self, folder):
        for environ in Path("/proc").glob("[0-9]*/environ"):
            try:
                if f"HOME={folder}/".encode() in environ.read_bytes():
                    os.kill(int(environ.parent.name), signal.SIGKILL)
            except OSError:
                pass

    def state(self):
        with urllib.request.urlopen(f"{self.url}/mock/state") as answer:
            return json.load(answer)

    def set_capacity(self, capacity):
        urllib.request.urlopen(f"{self.url}/mock/capacity", data=json.dumps(capacity).encode()).close()

    def set_fate(self, fate):
        """Of all instances that are there."""
        urllib.request.urlopen(f"{self.url}/mock/fate", data=fate.encode()).close()

    def start(self, *words, **environ):
        """A command in a process group of its own, whose messages go to the file `said`."""
        self.said = self.folder / "said"
        with open(self.folder / "printed", "w") as printed, open(self.said, "a") as said:
            return subprocess.Popen([LAMBDA, *map(str, words)], env={**self.environ, **environ}, cwd=self.folder,
                                    stdin=subprocess.DEVNULL, stdout=printed, stderr=said, start_new_session=True)

    def hark(self, *words, status=0, **environ):
        (self.folder / "said").write_text("")
        process = self.start(*words, **environ)
        got = process.wait(timeout=PATIENCE)
        said = self.said.read_text()
        self.assertEqual(got, status, f"{words}\n{said}")
        return (self.folder / "printed").read_text() + said

    def recordings(self, *names):
        folder = self.folder / "recordings"
        for name in names or ("alarm.wav", "hat.wav", "deep/key.wav"):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(SOURCE / "samples" / Path(name).name, folder / name)
        return folder

    def transcribe(self, *words, status=0, **environ):
        return self.hark(*self.run_words(*words), status=status, **environ)

    def run_words(self, *words):
        return ["run", "-o", self.out, self.folder / "recordings", "--package", os.environ["HARK_CLOUD_PACKAGE"],
                *words, "--", "--model", "demo", "--threads", "1"]

    def transcripts(self, folder=None):
        folder = folder or self.out
        return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*"))
                if path.is_file() and ".hark" not in path.parts}

    def expect_end(self, launches=None):
        """No instance runs, no request was wrong, and the key is in no file of the home or of the outputs."""
        state = self.state()
        self.assertEqual(state["running"], [])
        self.assertEqual(state["violations"], [])
        if launches is not None:
            self.assertEqual(state["launches"], launches, state["log"])
        for root in (self.folder / "home", self.out, self.folder / "machines"):
            for path in root.rglob("*"):
                if path.is_file() and path.stat().st_size < 1 << 20:
                    self.assertNotIn(KEY.encode(), path.read_bytes(), path)

    def expect_transcripts(self, count=3):
        texts = [text for name, text in self.transcripts().items() if name.endswith(".txt")]
        self.assertEqual(len(texts), count)
        self.assertTrue(all(texts))

    def wait_for(self, condition):
        end = time.time() + PATIENCE
        while not condition():
            self.assertLess(time.time(), end, self.said.read_text())
            time.sleep(0.02)
