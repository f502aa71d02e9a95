"""Loads a hark-serve of both demonstration models, by hand: python3 tests/serve_load.py [--bin DIR] [--minutes N].

200 clients send completions, chats, recordings and live sound for some minutes. A fifth of the requests is left in
the middle, a tenth is nonsense, and some clients read 1 KB/s. A text has its client's number and its request's, and
a transcript is compared with that of the same recording alone, so an answer of another client is found. At the end
SIGTERM comes while requests run: they must be answered, and the server must end with status 0. Exit status 1 if an
answer is lost, mixed or wrong; each is printed.
"""

import argparse
import base64
import collections
import http.client
import json
import multiprocessing
import os
import pathlib
import random
import re
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).parent.parent
CLIENTS, SLOW, LIVE, SPEECH = 200, 10, 3, 40  # of the clients: slow readers, live sound, recordings
LEAVE, NONSENSE = 0.2, 0.1  # of the requests of the other clients
SLOW_BYTES = 1024  # per second
SECONDS_OF_ENDING = 2  # requests that begin so shortly before SIGTERM may find no server
SAMPLES = ["harbour", "minister", "hat", "lights", "prices", "key", "train", "answer", "road", "sea"]
TEMPLATE = "{% for message in messages %}{{ message.role }}: {{ message.content }}\n{% endfor %}assistant:"
NONSENSE_BODIES = [
    ("/v1/completions", "application/json", b'{"model": "demo", "prompt": '),
    ("/v1/completions", "application/json", b'{"model": "demo", "prompt": "x", "max_tokens": -1}'),
    ("/v1/completions", "application/json", b"[" * 100000),
    ("/v1/chat/completions", "application/json", b'{"model": "demo", "messages": [{"role": 7}]}'),
    ("/v1/chat/completions", "application/json", b'{"model": "nobody", "messages": []}'),
    ("/v1/chat/completions", "text/plain", b"\xff\xfe\x00"),
    ("/v1/audio/transcriptions", "multipart/form-data; boundary=b", b"--b\r\nContent-Disposition: form-data\r\n\r\n"),
    ("/v1/nothing", "application/json", b"{}"),
]


class Left(Exception):
    """The client leaves in the middle."""


class Load:
    """What all clients share: the server's address, what is expected, and the counts."""

    def __init__(self, port):
        self.port = port
        self.lock = threading.Lock()
        self.counts = collections.Counter()
        self.longest = collections.Counter()  # seconds
        self.wrong = []
        self.texts, self.lines = {}, {}  # of the samples
        self.ending = None  # when SIGTERM came

    def count(self, kind, begin):
        with self.lock:
            self.counts[kind] += 1
            self.longest[kind] = max(self.longest[kind], time.monotonic() - begin)

    def fail(self, kind, why):
        with self.lock:
            self.counts[f"{kind}: WRONG"] += 1
            self.wrong.append(f"{kind}: {why}")
        print(f"{kind}: {why}", flush=True)


def check(passed, why):
    if not passed:
        raise AssertionError(why)


def form(sample, data):
    fields = "".join(f'--b\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
                     for name, value in (("model", "demo"), ("response_format", "json")))
    file = f'--b\r\nContent-Disposition: form-data; name="file"; filename="{sample}"\r\n\r\n'
    return fields.encode() + file.encode() + data + b"\r\n--b--\r\n"


def sample_bytes(sample):
    return (ROOT / "samples" / f"{sample}.wav").read_bytes()


def post(load, path, body, kind="application/json", leave=None, slow=False):
    """The answer's status and bytes. `leave`: raises Left after that many bytes of it, or seconds."""
    connection = http.client.HTTPConnection("127.0.0.1", load.port, timeout=900)
    if slow:
        connection.sock = socket.socket()
        connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.sock.connect(("127.0.0.1", load.port))
        connection.sock.settimeout(900)
    try:
        connection.request("POST", path, body, {"Content-Type": kind})
        if leave is not None and leave < 1:
            time.sleep(leave)
            raise Left
        reply = connection.getresponse()
        if leave is not None:
            reply.read(int(leave))
            raise Left
        if not slow:
            return reply.status, reply.read()
        parts = []
        while part := reply.read(SLOW_BYTES):
            parts.append(part)
            time.sleep(len(part) / SLOW_BYTES)
        return reply.status, b"".join(parts)
    finally:
        connection.close()


def events(text):
    """The data of server-sent events."""
    data = [line[6:] for line in text.decode().splitlines() if line.startswith("data: ")]
    check(data and data[-1] == "[DONE]", f"the stream ends early: {text[-300:]}")
    return [json.loads(one) for one in data[:-1]]


def completion(load, nonce, stream, leave=None):
    """With echo, the answer begins with the prompt."""
    prompt = f"Letter {nonce} said that"
    status, body = post(load, "/v1/completions", json.dumps({
        "model": "demo", "prompt": prompt, "max_tokens": 24, "seed": 1, "echo": True, "stream": stream}), leave=leave)
    check(status == 200, f"status {status}: {body[:300]}")
    texts = [one["choices"][0]["text"] for one in (events(body) if stream else [json.loads(body)])]
    text = "".join(texts)
    check(text.startswith(prompt), f"expected an answer to {prompt!r}, got {text!r}")


def chat(load, nonce, stream, leave=None, slow=False):
    """The answer must match an expression that has the nonce."""
    form = f"The answer to {nonce} is [a-z ]{{10,60}}"
    body = {"model": "demo", "messages": [{"role": "user", "content": f"What of {nonce}?"}], "regex": form,
            "max_tokens": 120, "seed": 1, "stream": stream}
    if slow:
        body |= {"logprobs": True, "top_logprobs": 20}
    status, said = post(load, "/v1/chat/completions", json.dumps(body), leave=leave, slow=slow)
    check(status == 200, f"status {status}: {said[:300]}")
    if stream:
        text = "".join(one["choices"][0]["delta"].get("content") or "" for one in events(said))
    else:
        text = json.loads(said)["choices"][0]["message"]["content"]
    check(re.fullmatch(form, text), f"expected {form!r}, got {text!r}")


def recording(load, sample, leave=None):
    status, body = post(load, "/v1/audio/transcriptions", form(sample, sample_bytes(sample)),
                        "multipart/form-data; boundary=b", leave=leave)
    check(status == 200, f"status {status}: {body[:300]}")
    text = json.loads(body)["text"]
    check(load.texts.setdefault(sample, text) == text, f"expected {load.texts[sample]!r}, got {text!r}")


def nonsense(load, chance):
    if chance.random() < 0.2:  # no HTTP at all: the connection is closed
        with socket.create_connection(("127.0.0.1", load.port), timeout=900) as raw:
            raw.sendall(chance.randbytes(200) + b"\r\n\r\n")
            reply = raw.recv(100)
            check(reply == b"" or reply.startswith(b"HTTP/1.1 4"), f"noise is answered {reply!r}")
        return
    bodies = NONSENSE_BODIES + [("/v1/audio/transcriptions", "multipart/form-data; boundary=b",
                                 form("noise", chance.randbytes(3000)))]
    path, kind, body = chance.choice(bodies)
    status, answer = post(load, path, body, kind)
    check(400 <= status < 500 and status != 429, f"{path} with {body[:60]!r}: status {status}")
    check(json.loads(answer)["error"]["message"], f"{path}: {answer!r}")


def receive(stream):
    """A WebSocket's message: its opcode and bytes."""
    first, size = stream.read(2)
    if size == 126:
        (size,) = struct.unpack(">H", stream.read(2))
    elif size == 127:
        (size,) = struct.unpack(">Q", stream.read(8))
    return first & 15, stream.read(size)


def live(load, sample):
    """The final text of a sample's sound, sent at once."""
    with socket.create_connection(("127.0.0.1", load.port), timeout=900) as raw, raw.makefile("rb") as stream:
        key = base64.b64encode(os.urandom(16)).decode()
        raw.sendall(f"GET /v1/audio/live?model=demo&rate=16000 HTTP/1.1\r\nHost: 127.0.0.1:{load.port}\r\n"
                    "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                    f"Sec-WebSocket-Key: {key}\r\n\r\n".encode())
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            line = stream.readline()
            check(line, f"the connection ends within {head!r}")
            head += line
        check(head.startswith(b"HTTP/1.1 101 "), head)

        sound = sample_bytes(sample)[44:]
        for part in (sound[at:at + 32000] for at in range(0, len(sound), 32000)):
            check(len(part) > 125, "such a short part has another header")
            raw.sendall(struct.pack(">BBHI", 0x82, 0x80 | 126, len(part), 0) + part)  # masked with zeros
        raw.sendall(struct.pack(">BBI", 0x81, 0x80 | 3, 0) + b"end")
        text = ""
        while True:
            opcode, data = receive(stream)
            if opcode == 8:
                break
            event = json.loads(data)
            if event["event"] == "final":
                text += event["text"]
        code = struct.unpack(">H", data[:2])[0]
        if code == 1001 and load.ending:
            return
        check(code == 1000, f"close {code}: {data[2:]}")
        check(load.lines.setdefault(sample, text) == text, f"expected {load.lines[sample]!r}, got {text!r}")


def request(load, index, chance, number):
    """Sends one request of a client, and returns its kind and the function that does."""
    nonce, stream, sample = f"{index} {number}", chance.random() < 0.5, chance.choice(SAMPLES)
    if index < SLOW:
        return "slow chat", lambda: chat(load, nonce, True, slow=True)
    if index < SLOW + LIVE:
        return "live", lambda: live(load, sample)
    dice = chance.random()
    if dice < NONSENSE:
        return "nonsense", lambda: nonsense(load, chance)
    leave = None
    if dice < NONSENSE + LEAVE:
        leave = chance.choice([chance.random() * 0.99, 1, 100])
    if index < SLOW + LIVE + SPEECH:
        return "recording", lambda: recording(load, sample, leave)
    if chance.random() < 0.5:
        return "completion", lambda: completion(load, nonce, stream, leave)
    return "chat", lambda: chat(load, nonce, stream, leave)


def client(load, index):
    chance, number = random.Random(index), 0
    while not load.ending:
        number += 1
        kind, send = request(load, index, chance, number)
        begin = time.monotonic()
        try:
            send()
            load.count(kind, begin)
        except Left:
            load.count(f"{kind}: left", begin)
        except Exception as why:  # whatever it is, it is reported
            refused = "status 503" in str(why) or isinstance(why, (OSError, http.client.HTTPException))
            if load.ending and begin > load.ending - SECONDS_OF_ENDING and refused:
                load.count("after SIGTERM", begin)
            else:
                load.fail(kind, f"{type(why).__name__} after {time.monotonic() - begin:.1f} s: {why}")


def watch_health(port, stop, results):
    """In a process of its own: the seconds that each /health took."""
    seconds = []
    while not stop.is_set():
        begin = time.monotonic()
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=900)
        connection.request("GET", "/health")
        status = connection.getresponse().status
        connection.close()
        seconds.append(time.monotonic() - begin if status == 200 else float("inf"))
        time.sleep(0.05)
    results.put(sorted(seconds))


def resident_mb(pid):
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 1024


def start(folder, directory):
    (directory / "template.jinja").write_text(TEMPLATE)
    server = subprocess.Popen(
        [folder / "hark-serve", "--model", "demo", "--chat-template", directory / "template.jinja", "--port", "0",
         "--max-queue", "1000", "--drain-timeout", "600"], stderr=subprocess.PIPE, text=True)
    for line in server.stderr:
        if line.startswith("listening on "):
            return server, int(line.rsplit(":", 1)[1])
    raise SystemExit("hark-serve has not started")


def run(load, server, minutes):
    stop, results = multiprocessing.Event(), multiprocessing.Queue()
    health = multiprocessing.Process(target=watch_health, args=(load.port, stop, results), daemon=True)
    health.start()
    for sample in SAMPLES:  # alone: what is expected of it
        recording(load, sample)
        live(load, sample)
    clients = [threading.Thread(target=client, args=(load, index)) for index in range(CLIENTS)]
    for one in clients:
        one.start()
    begin = time.monotonic()
    for part in range(20):
        time.sleep(max(0, begin + (part + 1) * minutes * 3 - time.monotonic()))
        print(f"{time.monotonic() - begin:.0f} s: {resident_mb(server.pid):.1f} MiB resident, "
              f"{sum(load.counts.values())} requests", flush=True)
    stop.set()
    seconds = results.get()
    health.join()
    load.ending = time.monotonic()
    server.send_signal(signal.SIGTERM)
    for one in clients:
        one.join()
    status = server.wait()
    print(f"/health, {len(seconds)} times: median {seconds[len(seconds) // 2] * 1e3:.1f} ms, "
          f"p99 {seconds[len(seconds) * 99 // 100] * 1e3:.1f} ms, most {seconds[-1] * 1e3:.1f} ms")
    print(f"ended with status {status} {time.monotonic() - load.ending:.1f} s after SIGTERM")
    return status == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/bin", help="folder of the tools")
    parser.add_argument("--minutes", type=float, default=10)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        server, port = start(options.bin, pathlib.Path(directory))
        try:
            load = Load(port)
            ended = run(load, server, options.minutes)
        finally:
            server.kill()
    for kind, count in sorted(load.counts.items()):
        print(f"{count:7} {kind}, the longest {load.longest[kind]:.1f} s")
    print(f"{len(load.wrong)} wrong")
    raise SystemExit(0 if ended and not load.wrong else 1)


main()
