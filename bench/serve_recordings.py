"""Recordings at once: hark-serve next to the pipe, in turn.

    python3 bench/serve_recordings.py --bin build/bin --model DIR [--count 100] [--runs 3] FILE... [-- FLAG...]

The files again and again, COUNT in all, go through `audio-decode | mel | whisper-transcribe` as one batch, and to a
server as that many requests at the same time. Both get the flags after `--`. The server has read its model and has
answered each file once before; the pipe's time has its start in it, which the time of one recording shows. Texts must
be equal. Prints the seconds of each run, those of the processors in brackets, and the server's speed as a share of the
pipe's by both: on a machine that does other work only the second one counts.
"""

import argparse
import concurrent.futures
import http.client
import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import time
import urllib.parse


def form(model, file):
    """A multipart body with the model and the file."""
    head = f'--b\r\nContent-Disposition: form-data; name="model"\r\n\r\n{model}\r\n'
    head += '--b\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n'
    return head.encode() + pathlib.Path(file).read_bytes() + b"\r\n--b--\r\n"


def ask(address, body):
    connection = http.client.HTTPConnection(address, timeout=3600)
    connection.request("POST", "/v1/audio/transcriptions", body, {"Content-Type": "multipart/form-data; boundary=b"})
    answer = json.loads(connection.getresponse().read())
    connection.close()
    return answer["text"]


def processor_seconds(pid):
    """Of a process and of its children that have ended."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def by_server(server, address, bodies):
    begin, worked = time.monotonic(), processor_seconds(server.pid)
    with concurrent.futures.ThreadPoolExecutor(len(bodies)) as threads:
        texts = list(threads.map(lambda body: ask(address, body), bodies))
    return time.monotonic() - begin, processor_seconds(server.pid) - worked, texts


def documents(text):
    """JSON values one after another."""
    decoder, at, values = json.JSONDecoder(), 0, []
    while at < len(text):
        value, at = decoder.raw_decode(text, at)
        values.append(value)
        at += len(text[at:]) - len(text[at:].lstrip())
    return values


def by_pipe(options, flags, files):
    tools = [[options.bin / "audio-decode", *files], [options.bin / "mel"],
             [options.bin / "whisper-transcribe", "--model", options.model, "--format", "json", *flags]]
    def children():
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    begin, worked = time.monotonic(), children()
    stages, out = [], None
    for tool in tools:
        stages.append(subprocess.Popen(tool, stdin=out, stdout=subprocess.PIPE))
        if out:
            out.close()  # so that a tool whose reader has failed ends
        out = stages[-1].stdout
    said = out.read()
    if any(stage.wait() for stage in stages):
        sys.exit("the pipe has failed")
    seconds = time.monotonic() - begin
    return seconds, children() - worked, [recording["text"] for recording in documents(said.decode())]


def main():
    own, flags = sys.argv[1:], []
    if "--" in own:
        own, flags = own[:own.index("--")], own[own.index("--") + 1:]
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    parser.add_argument("--model", required=True, help="a folder")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("files", nargs="+")
    options = parser.parse_args(own)
    files = [options.files[i % len(options.files)] for i in range(options.count)]
    server = subprocess.Popen([options.bin / "hark-serve", "--model", options.model, "--port", "0", *flags],
                              stderr=subprocess.PIPE, text=True)
    try:
        url = next(line.split()[-1] for line in server.stderr if line.startswith("listening on "))
        address = urllib.parse.urlsplit(url).netloc
        bodies = [form(os.path.basename(options.model.rstrip("/")), file) for file in files]
        by_server(server, address, bodies[:len(options.files)])
        print(f"pipe, one recording: {by_pipe(options, flags, files[:1])[0]:.2f} s")
        shares = []
        for _ in range(options.runs):
            pipe, pipe_worked, expected = by_pipe(options, flags, files)
            served, server_worked, texts = by_server(server, address, bodies)
            if [text.strip() for text in texts] != [text.strip() for text in expected]:
                sys.exit("the texts differ")
            shares.append((pipe / served, pipe_worked / server_worked))
            print(f"{options.count} recordings: pipe {pipe:.2f} ({pipe_worked:.2f}) s, server {served:.2f} "
                  f"({server_worked:.2f}) s, {shares[-1][0]:.3f} ({shares[-1][1]:.3f})", flush=True)
        print("medians {:.3f} ({:.3f})".format(*map(statistics.median, zip(*shares))))
    finally:
        server.terminate()
        server.wait()


main()
