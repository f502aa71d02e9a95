"""The two ends of loops.sh: its recordings, and what was written for them.

    python3 tests/accuracy/loops.py make DIR     # *.wav, and what is said: refs_KIND.jsonl
    python3 tests/accuracy/loops.py table DIR CONFIGURATION...

The recordings are those of tests/golden/recordings.py. The words of a recording are its text in
lower case without punctuation; a word is looped if it is in a run of the same 1, 2, 3, ...
words said four times in a row or more.
"""

import collections
import csv
import json
import pathlib
import re
import subprocess
import sys
import wave

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "golden"))
import recordings  # noqa: E402

SEEDS = (1, 2, 3, 4)
# More than a minute of speech has pauses of 30 s and more (rule b).
SECONDS = {"loud_noise": 60, "tones": 60, "chords": 60, "babble": 60, "drowned": 60, "speech": 120}
SAID = ("drowned", "speech")  # the others hold no words, or six voices at once
TIMES = 4


def make(folder):
    with open(recordings.SAMPLES / "transcripts.tsv", encoding="utf-8") as file:
        texts = {row["file"]: row["text"] for row in csv.DictReader(file, delimiter="\t")}
    for kind, seconds in SECONDS.items():
        references = []
        for seed in SEEDS:
            laid = []
            samples = recordings.recording(kind, seed, seconds, laid)
            name = f"{kind}_{seed}.wav"
            with wave.open(str(folder / name), "wb") as file:
                file.setparams((1, 2, recordings.RATE, 0, "NONE", ""))
                file.writeframes(samples.astype("<i2").tobytes())
            # The last clip is said where most of it is there.
            said = [texts[clip] for clip, begin, end in laid if (begin + end) // 2 <= len(samples)]
            references.append(json.dumps({"source": name, "text": " ".join(said)}) + "\n")
        if kind in SAID:
            (folder / f"refs_{kind}.jsonl").write_text("".join(references), encoding="utf-8")


def looped(words):
    """How many of the words are in a loop."""
    inside = set()
    for period in range(1, len(words) // TIMES + 1):
        same = 0  # words in a row that equal the one a period before
        for i in range(period, len(words)):
            same = same + 1 if words[i] == words[i - period] else 0
            if same >= (TIMES - 1) * period:
                inside.update(range(i - same - period + 1, i + 1))
    return len(inside)


def errors(folder, kind, lines):
    """Words said, and substituted, deleted and inserted ones, by whisper-eval."""
    report = subprocess.run(
        ["whisper-eval", "--reference", folder / f"refs_{kind}.jsonl", "--format", "tsv"],
        input="".join(lines),
        capture_output=True,
        check=True,
        text=True,
    )
    rows = {row["recording"]: row for row in csv.DictReader(report.stdout.splitlines(), delimiter="\t")}
    return [rows["total"][x] for x in ("words", "substitutions", "deletions", "insertions")]


def table(folder, configurations):
    head = "kind configuration words looped said substituted deleted inserted"
    print(*head.split(), sep="\t")
    for kind in SECONDS:
        for configuration in configurations:
            texts = collections.defaultdict(str)
            with open(folder / f"{configuration}.jsonl", encoding="utf-8") as file:
                lines = [line for line in file if json.loads(line)["source"].startswith(kind)]
            for segment in map(json.loads, lines):
                texts[segment["source"]] += segment["text"]
            words = [re.findall(r"[\w']+", text.lower()) for text in texts.values()]
            counts = [sum(map(len, words)), sum(map(looped, words))]
            said = errors(folder, kind, lines) if kind in SAID else ["-"] * 4
            print(kind, configuration, *counts, *said, sep="\t")


def main():
    command, folder, *configurations = sys.argv[1:]
    if command == "make":
        make(pathlib.Path(folder))
    else:
        table(pathlib.Path(folder), configurations)


if __name__ == "__main__":
    main()
