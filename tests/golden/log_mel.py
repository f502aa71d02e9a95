"""Writes log_mel.json: openai-whisper's log-mel spectra of signals that the C++ tests make too.

    python3 -m venv venv && venv/bin/pip install openai-whisper
    venv/bin/python tests/golden/log_mel.py

A signal of n samples is SplitMix64 noise (seed n) of 12 bits and a triangle of 100 samples' period,
in 16-bit integers: see signal(). The spectra are log_mel_spectrogram(signal, n_mels, padding=480000),
that is, Whisper's normalisation with 30 s of zeros after the end, and from them come

    frames   number before the first frame that overlaps nothing of the signal
    spots    {frame: its n_mels values}: all frames of a short signal, some of a long one
    means    of a long signal, every frame's mean over the mels
"""

import json
from pathlib import Path

import numpy as np
import torch
from whisper.audio import log_mel_spectrogram

LENGTHS = [0, 1, 100, 159, 160, 199, 200, 201, 319, 399, 400, 480, 16000, 16121, 16122, 16159, 479999,
           480000, 480001]
LONG = 16000
MASK = (1 << 64) - 1


def splitmix64(state):
    while True:
        state = (state + 0x9E3779B97F4A7C15) & MASK
        z = state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        yield z ^ (z >> 31)


def signal(n):
    noise = splitmix64(n)
    samples = []
    for i in range(n):
        triangle = abs(i % 100 - 50) * 400 - 10000
        samples.append((next(noise) >> 52) - 2048 + triangle)
    return np.array(samples, dtype=np.int16).astype(np.float32) / 32768


def spectra(n, n_mels):
    mel = log_mel_spectrogram(torch.from_numpy(signal(n)), n_mels, padding=480000).T.numpy()
    floor = mel[-1]  # a frame of zeros, in the middle of the padding
    frames = len(mel)
    while frames > 0 and np.array_equal(mel[frames - 1], floor):
        frames -= 1
    spots = range(frames + 1)
    entry = {"samples": n, "n_mels": n_mels}
    if n >= LONG:
        near_ends = [*range(4), *range(frames - 4, frames + 1)]
        spots = sorted({*near_ends, *range(37, frames, max(37, frames // 4))})
        if n_mels == 80 and n == 480000:
            entry["means"] = [round(float(x), 5) for x in mel[:frames].mean(axis=1)]
    entry["frames"] = frames
    entry["spots"] = {str(t): [round(float(x), 5) for x in mel[t]] for t in spots}
    return entry


def main():
    torch.set_num_threads(1)
    cases = [spectra(n, n_mels) for n in LENGTHS for n_mels in (80, 128)
             if n_mels == 80 or n in (0, 200, 16122, 480000)]
    path = Path(__file__).with_suffix(".json")
    path.write_text("[\n" + ",\n".join(json.dumps(c) for c in cases) + "\n]\n")


main()
