"""Makes tests/golden/bpe.json: token ids from the tokenizers library and from tiktoken.

Run from the repository's root, with tokenizers and tiktoken installed:

    python tests/golden/bpe.py [DIRECTORY WITH gpt2.tiktoken AND multilingual.tiktoken]

Without the directory the official vocabularies' ids are left out. Input is text, or bytes in hex
that are decoded with errors="replace" first.
"""
import base64
import json
import pathlib
import random
import sys

import tokenizers

ROOT = pathlib.Path(__file__).resolve().parents[2]
PATTERN = r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"""

TEXTS = [
    "", " ", "a", " a", "Hello, world!", " Hello, world!", " hallo",
    "And so my fellow Americans, ask not what your country can do for you, ask what you can do for your country.",
    "I'm you're he's we've they'll I'd don't DON'T I'M can't've 'tis 's 't 're x'll'd'm",
    "The year 1984, 3.14159, 1,000,000 and 2024-11-21T09:57:00Z; x2y3z 007 ²³ ½ ⅷ ٣٤٥ ४२ 一二三",
    "line one\nline two\n\nline four\r\nline five\r\n\r\n  indented\n\ttabbed\t\ttwice\n   \n",
    "trailing spaces   ", "   leading", "a  b   c    d     e", "\n\n\n", " \n \n ", "\t \t", "   x", "x   ",
    "no\u00a0break\u00a0space \u00a0 mixed \u00a0\u00a0 x", "thin\u2009hair\u200aen\u2002em\u2003ideographic\u3000x",
    "line\u2028separator\u2029paragraph \u2028 x", "next\u0085line \u0085 x", "vertical\u000btab\u000cfeed",
    "mongolian\u180evowel \u180e x", "ogham\u1680space", "zero\u200bwidth\u200d joiner\ufeff bom \u2060 x", "\u001c\u001d\u001e\u001f x",
    "café naïve Zürich Straße ÆØÅ", "cafe\u0301 nai\u0308ve a\u0300\u0316\u0335 \u0301alone",
    "Größenwahn und Übermut: „Zitat“ – Gedankenstrich … ‚einfach‘", "« À bientôt ! » s'écria-t-elle, l'œil rivé.",
    "Привет, мир! Съешь ещё этих мягких булок.", "Καλημέρα κόσμε, τι κάνεις;", "שלום עולם", "مرحبا بالعالم، كيف الحال؟",
    "नमस्ते दुनिया", "สวัสดีชาวโลก", "こんにちは世界。カタカナと漢字", "你好，世界！", "다람쥐 헌 쳇바퀴에 타고파", "ᏣᎳᎩ ᎦᏬᏂᎯᏍᏗ", "ኣማርኛ", "ქართული", "Հայերեն",
    "😀 😂🤣 👍🏽 👩‍👩‍👧‍👦 🇩🇪🇫🇷 ❤️ 🏴󠁧󠁢󠁳󠁣󠁴󠁿", "emoji😀inside word😀", "𝒜𝓁𝑔𝑒𝒷𝓇𝒶 𐍈 𒀀 𓀀",
    "x = f(a[i], *b) -> {\"k\": 'v'}; // comment $%^&*()_+|~`", "https://example.org/path?q=1&r=%20#frag user@example.org",
    "snake_case camelCase PascalCase kebab-case SCREAMING_CASE", "---- ==== **** ~~~~ ....", "a.b.c...d", "!?!?!?", "“quotes” ‘single’ «guillemets»",
    "<|endoftext|>", "text<|endoftext|>more", "<|startoftranscript|><|en|><|transcribe|><|0.00|> x", "< |endoftext| >",
    "a" * 300, "ab" * 200, " " * 300 + "x", "\n" * 100, "1" * 100, "!" * 100, "é" * 100, "antidisestablishmentarianism" * 20,
    "the the the the", "thethethe", " t h e", "\x00", "a\x00b\x01c\x7f", "\u0080\u009f", "\ufffd", "\uffff \ufffe",
    "Once upon a time there was a little girl who lived in a village near the forest.",
    "\"Well,\" said the old man, \"I never saw the like of it; no, not in forty years.\"",
    "KING RICHARD II:\nGentle and low, O my good lords; 'tis but the fashion of the time!\n",
]
BROKEN = [
    b"\xff", b"\x80", b"abc\xc3", b"\xc3(", b"\xe2\x82", b"\xe2\x82(", b"\xf0\x9f\x98", b"\xf0\x9f\x98 x", b"\xf0\x9f(\x8c",
    b"\xc0\xaf", b"\xe0\x80\xaf", b"\xf0\x80\x80\xaf", b"\xed\xa0\x80", b"\xed\xa0\x80\xed\xb0\x80", b"\xf4\x90\x80\x80", b"\xf5\x80\x80\x80",
    b"\xfe\xfe\xff\xff", b"ok \xe4\xbd\xa0\xe5 bad", b"\xc2\xa0\xc2", b"a\xf1\x80\x80\xe1\x80\xc2b\x80c\x80\xbfd", b"latin1: caf\xe9 na\xefve",
]


def random_texts():
    """Strings of code points from every block, and of pieces that meet at awkward places."""
    rng = random.Random(20240607)
    blocks = [(0x20, 0x7E), (0x20, 0x7E), (0xA0, 0x17F), (0x300, 0x36F), (0x370, 0x52F), (0x590, 0x6FF), (0x900, 0xDFF),
              (0x2000, 0x206F), (0x2070, 0x2BFF), (0x3000, 0x30FF), (0x4E00, 0x9FFF), (0xAC00, 0xD7A3), (0x1F300, 0x1FAFF)]
    pieces = [" ", "  ", "\n", "\t", "\r\n", "\u00a0", "'s", "'ll", "'", "the", "Ing", "12", "-", "...", "é", "e\u0301", "😀", "\u3000", "x"]
    for _ in range(40):
        yield "".join(chr(rng.randint(*rng.choice(blocks))) for _ in range(rng.randint(1, 60)))
    for _ in range(40):
        yield "".join(rng.choice(pieces) for _ in range(rng.randint(1, 40)))


def official(path):
    import tiktoken

    ranks = {}
    for line in path.read_bytes().splitlines():
        token, rank = line.split(b" ")
        ranks[b"" if token == b"=" else base64.b64decode(token)] = int(rank)
    return tiktoken.Encoding(path.stem, pat_str=PATTERN, mergeable_ranks=ranks, special_tokens={})


def main():
    encoders = {}
    for name in ("gpt-demo", "whisper-demo"):
        tokenizer = tokenizers.Tokenizer.from_file(str(ROOT / "models" / name / "tokenizer.json"))
        tokenizer.encode_special_tokens = True  # text that looks like a special token is text
        encoders[name] = lambda text, t=tokenizer: t.encode(text, add_special_tokens=False).ids
    if len(sys.argv) > 1:
        for name in ("gpt2", "multilingual"):
            encoding = official(pathlib.Path(sys.argv[1]) / f"{name}.tiktoken")
            encoders[name] = lambda text, e=encoding: e.encode(text, disallowed_special=())
    cases = []
    for text in TEXTS + list(random_texts()):
        cases.append({"text": text})
    for data in BROKEN:
        cases.append({"hex": data.hex(), "replaced": data.decode(errors="replace")})
    for case in cases:
        text = case.get("text", case.get("replaced"))
        case["ids"] = {name: encode(text) for name, encode in encoders.items()}
    out = ROOT / "tests" / "golden" / "bpe.json"
    lines = ",\n".join(json.dumps(case, separators=(",", ":")) for case in cases)
    out.write_text('{"made_with":"tokenizers %s",\n"cases":[\n%s\n]}\n' % (tokenizers.__version__, lines))


if __name__ == "__main__":
    main()
