"""How cost grows: time, memory and energy over recordings, their length, threads, batch, context, size.

    python3 bench/growth.py run --device cuda [--only NAME,...] [--seconds 300] > growth.tsv
    python3 bench/growth.py plot growth.tsv growth.svg

`run` starts the tools of PATH or of build/bin, one command per point, and prints a line for each row of
its output: series, x, what, ms, rate, unit, seconds of the command, its peak memory in MB, the most
memory that GPUs had in use in MB, and the joules they took over the whole command (NVML; else `-`). A
series starts no command after --seconds. `plot` draws the rates with gnuplot, one curve per `what`.
"""
import argparse
import ctypes
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import threading
import time

TREE = pathlib.Path(__file__).resolve().parent.parent
RATE = 16000
SHAPES = "gpt2-124m", "qwen2.5-0.5b", "llama-3.2-1b", "llama-3.1-8b"
SIZES = "tiny", "base", "small", "medium", "large-v3"
PROMPT = r"prompt of \d+(, greedy)?$"
COLUMNS = "series", "x", "what", "ms", "rate", "unit", "seconds", "peak_mb", "gpu_mb", "joules"


class Gpu:
    """Memory in use and energy of the first GPU, by NVML."""

    class Memory(ctypes.Structure):
        _fields_ = [(name, ctypes.c_ulonglong) for name in ("total", "free", "used")]

    def __init__(self):
        self.nvml = ctypes.CDLL("libnvidia-ml.so.1")
        self.handle = ctypes.c_void_p()
        if self.nvml.nvmlInit_v2() or self.nvml.nvmlDeviceGetHandleByIndex_v2(
                0, ctypes.byref(self.handle)):
            raise SystemExit("growth.py: NVML does not start")

    def used_mb(self):
        memory = self.Memory()
        self.nvml.nvmlDeviceGetMemoryInfo(self.handle, ctypes.byref(memory))
        return memory.used / 1e6

    def joules(self):
        millijoules = ctypes.c_ulonglong()
        if self.nvml.nvmlDeviceGetTotalEnergyConsumption(self.handle, ctypes.byref(millijoules)):
            return None
        return millijoules.value / 1e3


class Watch:
    """What a command takes: use it with `with`."""

    def __init__(self, gpu):
        self.gpu, self.most, self.ended = gpu, 0, threading.Event()

    def look(self):
        while not self.ended.wait(0.02):
            self.most = max(self.most, self.gpu.used_mb())

    def __enter__(self):
        self.began = time.monotonic()
        if self.gpu:
            self.first = self.gpu.joules()
            self.thread = threading.Thread(target=self.look)
            self.thread.start()
        return self

    def __exit__(self, *_):
        self.seconds = time.monotonic() - self.began
        if not self.gpu:
            return
        self.ended.set()
        self.thread.join()
        last = self.gpu.joules()
        self.joules = None if last is None else last - self.first


class Runs:
    """Runs commands and prints their lines until a series has used its time."""

    def __init__(self, device, seconds, work):
        self.gpu = Gpu() if device == "cuda" else None
        self.device, self.budget, self.work = device, seconds, work

    def begin(self, series):
        self.series, self.ends = series, time.monotonic() + self.budget

    def run(self, x, command, stdin=None):
        """The output of `command` and what it took, or None if the series has no time left."""
        if time.monotonic() > self.ends:
            print(f"growth.py: {self.series}: no time for {x}", file=sys.stderr)
            return None
        with tempfile.TemporaryFile("w+") as out, Watch(self.gpu) as watch:
            child = subprocess.Popen(command, stdin=stdin, stdout=out, text=True)
            _, status, usage = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
            out.seek(0)
            text = out.read()
        if child.returncode:
            print(f"growth.py: {' '.join(command)}: exit {child.returncode}", file=sys.stderr)
            self.ends = 0  # the rest of the series is larger
            return None
        return text, watch, usage.ru_maxrss / 1024 * 1.048576

    def line(self, x, what, ms, rate, unit, watch, peak):
        joules = "-"
        if self.gpu and watch.joules is not None:
            joules = f"{watch.joules:.0f}"
        used = f"{watch.most:.0f}" if self.gpu else "-"
        print(self.series, x, what, ms, rate, unit, f"{watch.seconds:.2f}", f"{peak:.0f}", used, joules,
              sep="\t", flush=True)

    def bench(self, x, wanted, *options):
        """A line for each row of bench's table in whose `what` one of the expressions is found."""
        done = self.run(x, ["bench", *map(str, options)])
        if not done:
            return
        text, watch, peak = done
        head, *rows = [row.split("\t") for row in text.splitlines()]
        for row in rows:
            row = dict(zip(head, row))
            ms = row["ms"]
            for name, word in wanted.items():
                if re.search(word, row["what"]):
                    rate, unit = row.get("rate"), row.get("unit")
                    if "tokens/s" in row:
                        rate, unit = row["tokens/s"], "tokens/s"
                    elif unit != "tokens/s":
                        rate, unit = f"{1e3 / float(ms):.4g}", "per second"
                    self.line(x, name, ms, rate, unit, watch, peak)


def samples():
    """The samples that are WAV, as one run of 16-bit values at 16 kHz."""
    return b"".join(path.read_bytes()[44:] for path in sorted(TREE.glob("samples/*.wav")))


def write_wav(path, seconds, offset=0):
    """The samples from `offset` seconds on, again and again."""
    pool = samples()
    pool = pool[offset * 2 * RATE % len(pool) // 2 * 2:] + pool
    size = seconds * 2 * RATE
    with open(path, "wb") as file:
        file.write(b"RIFF" + struct.pack("<I", 36 + size) + b"WAVEfmt " + struct.pack(
            "<IHHIIHH", 16, 1, 1, RATE, 2 * RATE, 2, 16) + b"data" + struct.pack("<I", size))
        while size > 0:
            size -= file.write(pool[:size])


def mel(wav, spectra):
    with open(wav, "rb") as file:
        subprocess.run(["mel"], stdin=file, stdout=spectra, check=True)


def transcribe(runs, x, audio_seconds, spectra):
    """One whisper-transcribe of the demo model over the file of `spectra`."""
    with open(spectra, "rb") as stream:
        done = runs.run(x, ["whisper-transcribe", "--model", str(TREE / "models/whisper-demo"),
                            "--device", runs.device, "--language", "en", "--format", "text"], stream)
    if done:
        _, watch, peak = done
        runs.line(x, "whisper-transcribe", f"{watch.seconds * 1e3:.1f}",
                  f"{audio_seconds / watch.seconds:.1f}", "times real time", watch, peak)


def recordings(runs):
    wav, one, spectra = runs.work / "a.wav", runs.work / "one", runs.work / "spectra"
    different = []
    for i in range(20):
        write_wav(wav, 20, i * 7)
        with open(one, "wb") as stream:
            mel(wav, stream)
        different.append(one.read_bytes())
    for count in (1, 10, 100, 1000):
        with open(spectra, "wb") as stream:
            for i in range(count):
                stream.write(different[i % len(different)])
        transcribe(runs, count, 20 * count, spectra)


def minutes(runs):
    wav, spectra = runs.work / "a.wav", runs.work / "spectra"
    for length in (1, 10, 60, 600):
        write_wav(wav, 60 * length)
        with open(spectra, "wb") as stream:
            mel(wav, stream)
        transcribe(runs, length, 60 * length, spectra)


def threads(runs):
    for count in (1, 2, 4, 8, 16):
        if count > len(os.sched_getaffinity(0)):
            break
        runs.bench(count, {"tiny f32, windows": "tiny encoder", "tiny f32, tokens": "tiny token$"},
                   "whisper", "--size", "tiny", "--dtype", "f32", "--threads", count)
        runs.bench(count, {"0.5b q8_0, prompt": PROMPT, "0.5b q8_0, step": "step, greedy"}, "gpt",
                   "--model", "qwen2.5-0.5b", "--type", "q8_0", "--threads", count, "--prompt", 128,
                   "--tokens", 24, "--left-out", 8, "--runs", 3)


def batch(runs):
    for count in (1, 4, 16, 64, 256, 512):
        runs.bench(count, {"0.5b bf16": "qwen"}, "gpt-batch", "--device", runs.device, "--model",
                   "qwen2.5-0.5b", "--type", "bf16", "--requests", count, "--max-sequences", count,
                   "--prompt", 64, "--tokens", 64)
    for count in (1, 8, 32, 128, 512):
        runs.bench(count, {"tiny f16, windows of 100 tokens": "window with 100 tokens"}, "whisper", "--device", runs.device, "--size",
                   "tiny", "--dtype", "f16", "--batch", count)


def context(runs):
    for length in (1024, 4096, 16384, 65536, 131000):
        runs.bench(length, {"1b bf16, prompt": PROMPT, "1b bf16, step": "step, greedy"}, "gpt",
                   "--device", runs.device, "--model", "llama-3.2-1b", "--type", "bf16", "--prompt",
                   length, "--tokens", 24, "--left-out", 8, "--runs", 1)


def size(runs):
    for shape in SHAPES:
        runs.bench(shape, {"prompt": PROMPT, "step": "step, greedy"}, "gpt", "--device", runs.device,
                   "--model", shape, "--type", "bf16", "--prompt", 512, "--tokens", 40, "--runs", 1)
    for name in SIZES:
        runs.bench(name, {"windows of 100 tokens": "window with 100 tokens"}, "whisper", "--device", runs.device, "--size", name,
                   "--dtype", "f16", "--batch", 32)


SERIES = {made.__name__: made for made in (recordings, minutes, threads, batch, context, size)}


def plot(table, picture):
    if not shutil.which("gnuplot"):
        raise SystemExit("growth.py: gnuplot is missing: on Debian, apt-get install gnuplot-nox")
    head, *rows = [line.rstrip("\n").split("\t") for line in open(table) if not line.startswith("#")]
    if tuple(head) != COLUMNS:
        raise SystemExit(f"growth.py: {table}: expected the columns of `run`")
    curves = {}
    for row in rows:
        row = dict(zip(head, row))
        if row["x"].isdigit():
            points = curves.setdefault(row["series"], {}).setdefault((row["what"], row["unit"]), [])
            points.append((row["x"], row["rate"]))
    if not curves:
        raise SystemExit(f"growth.py: {table}: no rows")
    lines = [f'set terminal svg size 900,{300 * ((len(curves) + 1) // 2)} font "sans,11"',
             f'set output "{picture}"', "set logscale xy", "set grid", "set key bottom right",
             "set format x '%.0f'", f"set multiplot layout {(len(curves) + 1) // 2},2"]
    for series, of_it in curves.items():
        lines.append(f'set title "{series}"')
        for i, points in enumerate(of_it.values()):
            lines += [f"${series}{i} << EOD", *map(" ".join, points), "EOD"]
        lines.append("plot " + ", ".join(
            f'${series}{i} with linespoints title "{what}, {unit}" noenhanced'
            for i, (what, unit) in enumerate(of_it)))
    subprocess.run(["gnuplot"], input="\n".join(lines) + "\n", text=True, check=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run")
    run.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    run.add_argument("--only", default=",".join(SERIES), help="series, separated by commas")
    run.add_argument("--seconds", type=float, default=300, help="for each series")
    draw = commands.add_parser("plot")
    draw.add_argument("table")
    draw.add_argument("picture")
    flags = parser.parse_args()
    if flags.command == "plot":
        return plot(flags.table, flags.picture)
    wanted = flags.only.split(",")
    for name in wanted:
        if name not in SERIES:
            parser.error(f"--only: expected some of {', '.join(SERIES)}; got {name}")
    os.environ["PATH"] += f":{TREE / 'build/bin'}"
    print(*COLUMNS, sep="\t", flush=True)
    with tempfile.TemporaryDirectory() as work:
        runs = Runs(flags.device, flags.seconds, pathlib.Path(work))
        for name in wanted:
            runs.begin(name)
            SERIES[name](runs)


main()
