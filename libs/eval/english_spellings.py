"""Makes libs/eval/english_spellings.inc from the spellings of openai-whisper's English normaliser.

Run from the repository's root, with openai-whisper installed:

    python libs/eval/english_spellings.py

A word of the list is its beginning, the letters that differ, and its ending: the table has a row for
each pair of differing letters, and words of one beginning are together.
"""
import collections
import json
import pathlib

import whisper.normalizers

ROOT = pathlib.Path(__file__).resolve().parents[2]
WIDTH = 90
HEADER = """\
// Made by english_spellings.py: do not edit. Each row: British letters, American letters, and the
// words that hold them, BEGINNING~ENDING,ENDING,... with the letters in place of ~.
// Source of the word list: openai/whisper, whisper/normalizers/english.json (MIT, Copyright (c)
// 2022 OpenAI), after https://www.tysto.com/uk-us-spelling-list.html. Its slips are kept, so that
// texts come out alike ("archeology</span>"); an entry with spaces inside, which no word equals,
// is not.
"""


def parts(british, american):
    shorter = min(len(british), len(american))
    begin = next((i for i in range(shorter) if british[i] != american[i]), shorter)
    end = next((i for i in range(shorter - begin) if british[-1 - i] != american[-1 - i]), shorter - begin)
    return british[:begin], british[begin:len(british) - end], american[begin:len(american) - end], british[len(british) - end:]


def main():
    path = pathlib.Path(whisper.normalizers.__file__).parent / "english.json"
    rows = collections.defaultdict(lambda: collections.defaultdict(list))
    for british, american in json.loads(path.read_text()).items():
        if " " in british:
            continue
        begin, old, new, end = parts(british, american)
        rows[old, new][begin].append(end)
    out = HEADER
    for (old, new), words in sorted(rows.items(), key=lambda row: (-sum(map(len, row[1].values())), row[0])):
        out += f'{{"{old}", "{new}",\n'
        line = ""
        for begin in sorted(words):
            word = begin + "~"
            for end in sorted(words[begin]):
                # A family that is too long for a line begins again on the next one.
                if len(word) + len(end) > WIDTH:
                    out += f' "{line} "\n' if line else ""
                    line, word = word[:-1], begin + "~"
                word += end + ","
            word = word[:-1]
            if line and len(line) + 1 + len(word) > WIDTH:
                out += f' "{line} "\n'
                line = ""
            line += (" " if line else "") + word
        out += f' "{line}"}},\n'
    (ROOT / "libs/eval/english_spellings.inc").write_text(out)


if __name__ == "__main__":
    main()
