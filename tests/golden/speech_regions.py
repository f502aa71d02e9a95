"""Regions of speech as faster-whisper's get_speech_timestamps cuts them from given probabilities.

    pip install faster-whisper==1.2.1
    python3 tests/golden/speech_regions.py > tests/golden/speech_regions.json

The probabilities follow a generator that regions_test.cc has as well (splitmix64).
"""

import json
import sys
from unittest import mock

import faster_whisper.vad as vad
import numpy as np

MASK = (1 << 64) - 1


class Random:
    def __init__(self, seed: int) -> None:
        self.state = seed

    def uniform(self) -> float:
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        return ((z ^ (z >> 31)) >> 11) / (1 << 53)


def probabilities(random: Random, count: int) -> np.ndarray:
    """Runs of 1 to 40 steps around a level of their own."""
    values: list[float] = []
    while len(values) < count:
        length, level = 1 + int(40 * random.uniform()), random.uniform()
        values += [level + 0.3 * (random.uniform() - 0.5) for _ in range(length)]
    return np.asarray(values[:count], dtype=np.float32)


def main() -> None:
    cases = []
    for seed in range(200):
        random = Random(seed)
        samples = 512 * int(10 + 590 * random.uniform()) + int(512 * random.uniform())
        options = {
            "threshold": [0.3, 0.5, 0.7][seed % 3],
            "min_speech_duration_ms": [0, 100, 250][seed // 3 % 3],
            "min_silence_duration_ms": [0, 100, 500, 2000][seed % 4],
            "max_speech_duration_s": [float("inf"), 5.0, 1.5][seed // 2 % 3],
            "speech_pad_ms": [0, 30, 200, 400][seed // 5 % 4],
        }
        given = probabilities(random, samples // 512 + 1)
        with mock.patch.object(vad, "get_vad_model", lambda: lambda audio: given):
            found = vad.get_speech_timestamps(
                np.zeros(samples, np.float32), vad.VadOptions(**options)
            )
        options["max_speech_duration_s"] = min(options["max_speech_duration_s"], 1e9)
        regions = [[region["start"], region["end"]] for region in found]
        cases.append({"seed": seed, "samples": samples, **options, "regions": regions})
    json.dump({"cases": cases}, sys.stdout, separators=(",", ":"))
    print()


if __name__ == "__main__":
    main()
