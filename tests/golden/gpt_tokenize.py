"""Makes tests/golden/gpt_tokenize.json: what tokenizers and tiktoken make of 1 MB of mixed text, and
what the tokenizers library's BpeTrainer learns.

Run from the repository's root, with tokenizers and tiktoken installed:

    python tests/golden/gpt_tokenize.py DIRECTORY_WITH_gpt2.tiktoken_AND_multilingual.tiktoken

The text is not kept: a random generator lays pieces end to end, here and in the test. Of the ids
the number, the first and a hash are kept (FNV-1a, 64 bits, over little-endian int32). Bytes that
are no UTF-8 are decoded with errors="replace".
"""
import json
import pathlib
import struct
import sys

import tokenizers
from tokenizers import models, pre_tokenizers, trainers

from bpe import ROOT, TEXTS, official, random_texts

MIXED = [" ", " ", " ", "  ", "\n", "\n\n", "\t", "\r\n", "   \n", "\u00a0", "\u3000", "'s", "'ll", "n't", "'re ", "’s", ", ", ". ", "! ", "?\"",
         " the", " and", " of", " little", " house", "The", "Once", "upon", "KING", "ing", "ed", " 1984", " 3.14", "2,000", " x = f(y);", "{\"k\": 1}", "=====",
         "https://example.org/?q=1", "naïve", "Größe", " œuvre", "e\u0301", "Привет", " мир", "Καλημέρα", " שלום", " مرحبا", "नमस्ते", " สวัสดี", "こんにちは", "世界。", "漢字",
         "안녕", "ქართ", "Հայ", "ኣማርኛ", "😀", " 👩\u200d👩\u200d👧", "🇩🇪", "❤️", "𝒜𝓁", "½", "٣٤", "²", "<|endoftext|>", "antidisestablishmentarianism"]
BROKEN = [b"\xff", b"\xc3", b"\xe2\x82", b"\xf0\x9f\x98", b"\x80", b"\xed\xa0\x80", b"caf\xe9 "]
FEW = ["a", "b", "ab", "ba", "aa", "c", " ", " a", "abc", "bcb", "-", "--"]
MASK = (1 << 64) - 1


def generated(pieces, seed, size):
    """Bytes, at least `size` of them; tests/text/tokenize_golden_test.cc makes the same."""
    out, have = [], 0
    while have < size:
        seed = (seed * 6364136223846793005 + 1442695040888963407) & MASK
        piece = pieces[(seed >> 33) % len(pieces)]
        out.append(piece)
        have += len(piece)
    return b"".join(out)


def fnv(data):
    value = 0xCBF29CE484222325
    for byte in data:
        value = ((value ^ byte) * 0x100000001B3) & MASK
    return f"{value:016x}"


def summary(ids):
    return {"count": len(ids), "first": ids[:16], "hash": fnv(struct.pack(f"<{len(ids)}i", *ids))}


def trained(text, size):
    """The vocabulary's size and the merges, a line each, as in merges.txt."""
    tokenizer = tokenizers.Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(vocab_size=size, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False)
    tokenizer.train_from_iterator([text], trainer)
    model = json.loads(tokenizer.to_str())["model"]
    merges = ["%s %s" % tuple(merge) for merge in model["merges"]]
    return {"tokens": len(model["vocab"]), "merges": len(merges), "first": merges[:8], "last": merges[-8:],
            "hash": fnv("".join(line + "\n" for line in merges).encode())}


def main():
    pieces = [p.encode() for p in MIXED] + BROKEN
    for text in TEXTS + list(random_texts()):
        if 0 < len(text) <= 40:
            pieces.append(text.encode())
    mixed = generated(pieces, 1, 1_000_000)
    text = mixed.decode(errors="replace")
    ids = {}
    for name in ("gpt-demo", "whisper-demo"):
        tokenizer = tokenizers.Tokenizer.from_file(str(ROOT / "models" / name / "tokenizer.json"))
        tokenizer.encode_special_tokens = True
        ids[name] = summary(tokenizer.encode(text, add_special_tokens=False).ids)
    for name in ("gpt2", "multilingual"):
        encoding = official(pathlib.Path(sys.argv[1]) / f"{name}.tiktoken")
        ids[name] = summary(encoding.encode(text, disallowed_special=()))
    training = []
    for source, seed, size, vocab in [("mixed", 2, 200_000, 2000), ("mixed", 3, 2_000, 4000), ("few", 4, 2_000, 400),
                                      ("few", 5, 20_000, 1000), ("few", 6, 500, 5000)]:
        chosen = pieces if source == "mixed" else [p.encode() for p in FEW]
        made = generated(chosen, seed, size).decode(errors="replace")
        training.append({"pieces": source, "seed": seed, "bytes": size, "vocab": vocab, "result": trained(made, vocab)})
    golden = {"made_with": f"tokenizers {tokenizers.__version__}, tiktoken", "mixed": [p.hex() for p in pieces],
              "few": [p.encode().hex() for p in FEW], "seed": 1, "bytes": 1_000_000, "text_hash": fnv(mixed), "ids": ids, "training": training}
    (ROOT / "tests" / "golden" / "gpt_tokenize.json").write_text(json.dumps(golden, ensure_ascii=False, indent=0) + "\n")


if __name__ == "__main__":
    main()
