"""Makes tests/golden/hellaswag.json: completions' losses, by transformers in float32.

Run from anywhere, with torch and transformers installed:

    python tests/golden/hellaswag.py [FILE.bin]

The demo model over 100 examples whose tokens, lengths and labels are given by a formula (below;
tests/gpt/hellaswag_test.cc has it too): of each the mean loss of its 4 completions over their own
tokens, as llm.c and lm-eval's acc_norm score them, and how many right completions have the least.
With FILE.bin the examples are also written in llm.c's evaluation format, for gpt-train --hellaswag.
"""
import json
import pathlib
import sys

sys.path.pop(0)  # kernels.py next to this file is not the package that transformers looks for
import numpy as np
import torch
import transformers

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLES, VOCABULARY = 100, 4096


def token(i, k, j):
    """Token j of completion k of example i; k = 4: of its context."""
    return (977 * (5 * i + k + 1) * (j + 3) + 13 * i + j * j) % VOCABULARY


def example(i):
    context = [token(i, 4, j) for j in range(1 + i % 23)]
    completions = [[token(i, k, j) for j in range(1 + (7 * i + 3 * k) % 17)] for k in range(4)]
    return context, completions, (i * i + i // 3) % 4


def write(path):
    """As llm.c's dev/data/data_common.py lays a file out."""
    header, stream, longest = np.zeros(256, dtype="<i4"), [], 0
    for i in range(EXAMPLES):
        context, completions, label = example(i)
        one = [65535, 0, i, label, 4, len(context), *context]
        for completion in completions:
            one += [len(completion), *completion]
        one[1] = 2 * len(one)
        longest = max(longest, one[1])
        stream += one
    header[:4] = [20240522, 1, EXAMPLES, longest]
    path.write_bytes(header.tobytes() + np.array(stream, dtype="<u2").tobytes())


def main():
    torch.set_num_threads(1)
    model = transformers.GPT2LMHeadModel.from_pretrained(
        ROOT / "models" / "gpt-demo", dtype=torch.float32, attn_implementation="eager").eval()
    losses, right = [], 0
    for i in range(EXAMPLES):
        context, completions, label = example(i)
        means = []
        for completion in completions:
            ids = torch.tensor([context + completion])
            with torch.no_grad():
                logits = model(ids).logits[0, len(context) - 1:-1]
            means.append(torch.nn.functional.cross_entropy(logits, ids[0, len(context):]).item())
        losses.append([round(v, 6) for v in means])
        right += means.index(min(means)) == label
    path = ROOT / "tests" / "golden" / "hellaswag.json"
    path.write_text(json.dumps({"losses": losses, "right": right}, separators=(",", ":")) + "\n")
    if len(sys.argv) > 1:
        write(pathlib.Path(sys.argv[1]))


if __name__ == "__main__":
    main()
