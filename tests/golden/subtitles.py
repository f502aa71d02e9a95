"""What openai-whisper's writers make of timed words: subtitles.json.

    pip install openai-whisper==20250625
    python3 tests/golden/subtitles.py

Seconds. The file:

transcripts  of each, its segments: [start, end, [[word, start, end], ...]]
whole        [transcript, options, srt, vtt]: options are [max_line_width, max_line_count,
             max_words_per_line, highlight_words], 0 for none; then what is written
hashes       the same over a grid of options, with the 64-bit FNV-1a of what is written
"""

import io
import itertools
import json
import pathlib
import random

import whisper.utils

OUTPUT = pathlib.Path(__file__).with_suffix(".json")
TEXTS = (
    "He lived with his mother, in a small house by the sea. “Who goes there?” said the stranger; "
    "nobody answered. The incomprehensibilities of counterrevolutionaries - well, 3.5 % of them!",
    "Über Äpfel, Öl und Straßen sprach der Vater oft. Le garçon naïf déjà vu, l'été à Orléans… "
    "El niño pingüino ¿qué hace? Çok güzel, żółw i łąka.",
    "I. No. Yes, a b c d e f g. Oh!",
)
WIDTHS, COUNTS, WORDS = (0, 1, 9, 18, 42, 80), (0, 1, 2, 3), (0, 1, 2, 5)
WHOLE = (
    (0, (0, 0, 0, False)),
    (0, (30, 2, 0, False)),
    (1, (24, 0, 0, True)),
    (1, (20, 1, 0, False)),
    (2, (0, 0, 3, True)),
)


def transcript(text, seed):
    """Segments of 1 to 12 words; pauses within and between them, some longer than 3 s."""
    draw = random.Random(seed)
    words = [" " + word for word in text.split()]
    segments, time = [], draw.randrange(200)
    while words:
        length = draw.randint(1, 12)
        taken, words = words[:length], words[length:]
        timed = []
        for word in taken:
            time += draw.choice((0, 0, 0, 3, 20, 150, 310)) if draw.random() < 0.4 else 0
            end = time + draw.randint(0, 80)
            timed.append([word, time / 100, end / 100])
            time = end
        segments.append([timed[0][1], timed[-1][2], timed])
        time += draw.choice((0, 5, 120, 300, 301, 450))
    return segments


def written(writer, segments, options):
    result = {
        "segments": [
            {
                "start": start,
                "end": end,
                "text": "".join(word for word, _, _ in words),
                "words": [{"word": w, "start": s, "end": e} for w, s, e in words],
            }
            for start, end, words in segments
        ]
    }
    width, count, most, highlight = options
    file = io.StringIO()
    writer(".").write_result(
        result,
        file,
        {
            "max_line_width": width or None,
            "max_line_count": count or None,
            "max_words_per_line": most or None,
            "highlight_words": highlight,
        },
    )
    return file.getvalue()


def fnv1a(text):
    hash = 0xCBF29CE484222325
    for byte in text.encode():
        hash = (hash ^ byte) * 0x100000001B3 % 2**64
    return f"{hash:016x}"


def main():
    transcripts = [transcript(text, 40 + i) for i, text in enumerate(TEXTS)]
    both = (whisper.utils.WriteSRT, whisper.utils.WriteVTT)
    grid = itertools.product(range(len(TEXTS)), WIDTHS, COUNTS, WORDS, (False, True))
    golden = {
        "transcripts": transcripts,
        "whole": [[t, o, *(written(w, transcripts[t], o) for w in both)] for t, o in WHOLE],
        "hashes": [
            [t, o, *(fnv1a(written(w, transcripts[t], o)) for w in both)] for t, *o in grid
        ],
    }
    OUTPUT.write_text(json.dumps(golden, ensure_ascii=False, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
