"""Times gpt-tokenize next to tiktoken and tokenizers, on one core, on the same text.

    taskset -c 0 python3 bench/tokenize_peers.py TEXT GPT2_RANKS [TOKENIZER_JSON]
    taskset -c 0 python3 bench/tokenize_peers.py TEXT --families FOLDER

GPT2_RANKS is a tiktoken rank file, TOKENIZER_JSON the demonstration model's unless given. Each
program has its vocabulary loaded and the text in memory (gpt-tokenize reads and writes files); the
best of seven rounds counts, one program after another in each. Needs tiktoken and tokenizers. With
--families gpt-tokenize and tokenizers read the text with the tokenizer of each family in FOLDER, which
tests/golden/model_tokenizers.py --train TEXT 4096 --fuzz 1000 FOLDER makes; the best of three rounds.
"""
import base64
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"
import tokenizers  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[1]
PATTERN = r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"""


def timed(function):
    begin = time.perf_counter()
    count = function()
    return time.perf_counter() - begin, count


def hark(text_file, vocabulary):
    """Seconds from the first byte read to the last written, and tokens, as --verbose prints them."""
    tool = ROOT / "build" / "bin" / "gpt-tokenize"
    done = subprocess.run([tool, "--threads", "1", "--no-eot", "--verbose", "--tokenizer", vocabulary, text_file],
                          stdout=open("/dev/null", "wb"), stderr=subprocess.PIPE, text=True, check=True)
    tokens, ms = re.search(r"(\d+) tokens ([\d.]+) ms", done.stderr).groups()
    return float(ms) / 1000, int(tokens)


def compare_families(text_file, folder):
    text = pathlib.Path(text_file).read_text()
    for family in json.loads((folder / "common.json").read_text())["families"]:
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump(json.loads((folder / f"{family['name']}.json").read_text())["tokenizer"], file)
            file.flush()
            peer = tokenizers.Tokenizer.from_file(file.name)
            peer.encode_special_tokens, peer.post_processor = True, tokenizers.processors.Sequence([])
            rounds = [(timed(lambda: len(peer.encode_batch_fast([text])[0].ids)), hark(text_file, file.name)) for _ in range(3)]
        theirs, ours = (min(one[i] for one in rounds) for i in range(2))
        print(f"{family['name']}\t{theirs[1]} and {ours[1]} tokens\t{len(text) / theirs[0] / 1e6:.2f} and "
              f"{len(text) / ours[0] / 1e6:.2f} million characters per second\t{theirs[0] / ours[0]:.1f} x", flush=True)


def main():
    text_file, ranks_file = sys.argv[1], sys.argv[2]
    if ranks_file == "--families":
        return compare_families(text_file, pathlib.Path(sys.argv[3]))
    import tiktoken
    json_file = sys.argv[3] if len(sys.argv) > 3 else str(ROOT / "models" / "gpt-demo" / "tokenizer.json")
    text = pathlib.Path(text_file).read_text()
    lines = text.splitlines(keepends=True)
    ranks = {}
    for line in pathlib.Path(ranks_file).read_bytes().splitlines():
        token, rank = line.split()
        ranks[base64.b64decode(token)] = int(rank)
    gpt2 = tiktoken.Encoding("gpt2", pat_str=PATTERN, mergeable_ranks=ranks, special_tokens={})
    demo = tokenizers.Tokenizer.from_file(json_file)
    demo.encode_special_tokens = True
    runs = {
        "tiktoken, GPT-2's ranks": lambda: timed(lambda: len(gpt2.encode_ordinary(text))),
        "hark, GPT-2's ranks": lambda: hark(text_file, ranks_file),
        "tokenizers, tokenizer.json, whole": lambda: timed(lambda: len(demo.encode_batch_fast([text])[0].ids)),
        "tokenizers, tokenizer.json, lines": lambda: timed(lambda: sum(len(e.ids) for e in demo.encode_batch_fast(lines))),
        "hark, tokenizer.json": lambda: hark(text_file, json_file),
    }
    best = {}
    for _ in range(7):
        for name, run in runs.items():
            seconds, count = run()
            best[name] = min(best.get(name, (seconds, count)), (seconds, count))
    size = len(text.encode())
    for name, (seconds, count) in best.items():
        print(f"{name}\t{count} tokens\t{seconds * 1000:.1f} ms\t{size / seconds / 1e6:.1f} MB/s")


if __name__ == "__main__":
    main()
