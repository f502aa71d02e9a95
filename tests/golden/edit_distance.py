"""Makes tests/golden/edit_distance.json: pairs of texts with jiwer's error counts.

Run from the repository's root, with jiwer 4.0 installed:

    python tests/golden/edit_distance.py

Each pair: reference, hypothesis, and jiwer's matches, substitutions, deletions and insertions in
words, then its errors in characters.
"""
import json
import pathlib
import random

import jiwer

ROOT = pathlib.Path(__file__).resolve().parents[2]
WORDS = "the old captain walked slowly down to a harbour é 日本 and saw nobody there at all".split()


def pairs():
    rng = random.Random(7)
    for _ in range(120):  # unrelated, few different words: many alignments are as short
        few = WORDS[: rng.randint(1, 5)]
        yield [rng.choice(few) for _ in range(rng.randint(1, 12))], [rng.choice(few) for _ in range(rng.randint(0, 12))]
    for length in [5] * 60 + [30] * 60 + [100] * 40 + [300] * 20:  # a text with errors
        reference = [rng.choice(WORDS) for _ in range(rng.randint(1, length))]
        hypothesis, rate = [], rng.choice([0.02, 0.1, 0.4])
        for word in reference:
            kind = rng.random() / rate
            if kind >= 1:
                hypothesis.append(word)
            elif kind >= 2 / 3:
                hypothesis.append(rng.choice(WORDS))
            elif kind >= 1 / 3:
                hypothesis += [word, rng.choice(WORDS)]
        yield reference, hypothesis


def main():
    rows = []
    for reference, hypothesis in pairs():
        reference, hypothesis = " ".join(reference), " ".join(hypothesis)
        words, characters = jiwer.process_words(reference, hypothesis), jiwer.process_characters(reference, hypothesis)
        errors = characters.substitutions + characters.deletions + characters.insertions
        rows.append([reference, hypothesis, [words.hits, words.substitutions, words.deletions, words.insertions], errors])
    lines = ",\n".join(json.dumps(row, ensure_ascii=False, separators=(",", ":")) for row in rows)
    out = ROOT / "tests" / "golden" / "edit_distance.json"
    out.write_text('{"made_with":"jiwer 4.0.0",\n"pairs":[\n%s\n]}\n' % lines)


if __name__ == "__main__":
    main()
