"""Makes tests/golden/samplers.json: references for the sampler's filters, with torch and transformers.

    python tests/golden/samplers.py

"typical" and "chain" are transformers' logits processors. The others are written here in plain
Python from their sources, without the engine's methods: OpenAI's API reference (presence and
frequency penalties), text-generation-webui's pull requests 5677 (DRY) and 6335 (XTC), Basu et al.
2021, algorithm 2 (mirostat). null: an excluded token.
"""
import json
import math
import pathlib
import sys

sys.path.pop(0)  # this folder has files with the names of packages

import torch
import transformers
from transformers.generation.logits_process import (
    MinPLogitsWarper,
    RepetitionPenaltyLogitsProcessor,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
    TypicalLogitsWarper,
)

NEVER = float("-inf")


def softmax(logits):
    top = max(logits)
    weights = [math.exp(x - top) for x in logits]
    total = sum(weights)
    return [w / total for w in weights]


def counts(logits, text, presence, frequency):
    return [x - presence * (i in text) - frequency * text.count(i) for i, x in enumerate(logits)]


def dry(logits, tokens, multiplier, base, allowed, breakers):
    """Every earlier place that ends as the tokens do, compared token by token."""
    out, last = list(logits), tokens[-1]
    if last in breakers:
        return out
    longest = {}
    for i in range(len(tokens) - 1):
        following = tokens[i + 1]
        if tokens[i] != last or following in breakers:
            continue
        length = 1
        while i - length >= 0:
            before = tokens[-1 - length]
            if tokens[i - length] != before or before in breakers:
                break
            length += 1
        longest[following] = max(length, longest.get(following, 0))
    for token, length in longest.items():
        if length >= allowed:
            out[token] -= multiplier * base ** (length - allowed)
    return out


def xtc(logits, threshold):
    p = softmax(logits)
    top = sorted((i for i in range(len(p)) if p[i] >= threshold), key=lambda i: -p[i])
    excluded = set(top[:-1])
    return [NEVER if i in excluded else x for i, x in enumerate(logits)]


def mirostat(rows, tau, eta, uniforms):
    """Tokens that are drawn from each row in turn by the uniform numbers, over ascending ids."""
    mu, tokens, mus = 2 * tau, [], []
    for logits, u in zip(rows, uniforms):
        p = softmax(logits)
        best = p.index(max(p))
        kept = [x if i == best or -math.log2(x) <= mu else 0 for i, x in enumerate(p)]
        total, reached = sum(kept), 0
        for token, x in enumerate(kept):
            reached += x
            if x > 0 and reached > u * total:
                break
        tokens.append(token)
        mu -= eta * (-math.log2(kept[token] / total) - tau)
        mus.append(mu)
    return tokens, mus


def split_mix(start, i):
    mask = (1 << 64) - 1
    z = (start + i * 0x9E3779B97F4A7C15) & mask
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
    return z ^ (z >> 31)


def uniform_at(seed, position):
    return (split_mix(seed, position + 1) >> 11) * 2.0**-53


def random_logits(n, scale):
    """Short decimals, so that the file is small."""
    return [round(x, 3) for x in (torch.randn(n) * scale).tolist()]


def main():
    torch.manual_seed(17)
    cases = []

    def add(name, options, logits, result, tokens=(), prompt=0):
        cases.append({"filter": name, "options": options, "tokens": list(tokens), "prompt": prompt, "logits": logits,
                      "result": [None if x == NEVER else round(x, 7) for x in result]})

    for n in (6, 50, 150):
        logits = random_logits(n, 3)
        scores = torch.tensor(logits)
        for mass in (0.1, 0.5, 0.9, 0.99):
            result = TypicalLogitsWarper(mass)(None, scores.clone()[None])[0].tolist()
            add("typical", {"typical_p": mass}, logits, result)
        text = torch.randint(0, n, (40,)).tolist()
        for presence, frequency in ((0.7, 0), (0, 0.3), (-1.5, 2)):
            add("counts", {"presence_penalty": presence, "frequency_penalty": frequency}, logits,
                counts(logits, text[15:], presence, frequency), text, 15)
        for threshold in (0.01, 0.1, 0.3, 0.5):
            add("xtc", {"xtc_threshold": threshold}, logits, xtc(logits, threshold))
    penalised = 0
    for turn in range(40):
        n = 12
        logits = random_logits(n, 2)
        few = 2 + turn % 4  # few tokens repeat often
        tokens = torch.randint(0, few, (1 + 3 * turn,)).tolist()
        breakers = [[], [3], [0, 7]][turn % 3]
        options = {"dry_multiplier": [0.8, 2.0][turn % 2], "dry_base": [1.75, 1.1][turn % 2],
                   "dry_allowed_length": 1 + turn % 3}
        result = dry(logits, tokens, *options.values(), set(breakers))
        penalised += result != logits
        add("dry", {**options, "breakers": breakers}, logits, result, tokens, 1)
    assert penalised > 15, penalised
    # All of transformers' that hark has, in the order of its generate() except typical-p,
    # which it applies last.
    logits, tokens = random_logits(200, 4), torch.randint(0, 200, (30,)).tolist()
    scores = torch.tensor(logits)
    chained = RepetitionPenaltyLogitsProcessor(1.3)(torch.tensor([tokens]), scores.clone()[None])
    for warper in (TemperatureLogitsWarper(1.4), TopKLogitsWarper(60), TypicalLogitsWarper(0.97),
                   TopPLogitsWarper(0.9), MinPLogitsWarper(0.05)):
        chained = warper(None, chained)
    add("chain", {"repetition_penalty": 1.3, "temperature": 1.4, "top_k": 60, "typical_p": 0.97, "top_p": 0.9,
                  "min_p": 0.05}, logits, chained[0].tolist(), tokens, len(tokens))
    draws = []
    for seed, tau, eta in ((1, 3, 0.1), (2, 5, 0.5), (3, 1, 0.9)):
        rows = [random_logits(30, 2.5) for _ in range(40)]
        uniforms = [uniform_at(seed, 4 + i) for i in range(len(rows))]
        drawn, mus = mirostat(rows, tau, eta, uniforms)
        draws.append({"seed": seed, "prompt": 4, "tau": tau, "eta": eta, "rows": rows, "tokens": drawn,
                      "least_mu": min(mus)})
    uniforms = [{"seed": seed, "position": position, "uniform": uniform_at(seed, position)}
                for seed in (0, 7, 2**63 + 11) for position in (0, 1, 4095)]
    dump = lambda items: ",\n".join(json.dumps(item, separators=(",", ":")) for item in items)
    path = pathlib.Path(__file__).resolve().parent / "samplers.json"
    path.write_text('{"made_with":"transformers %s, torch %s",\n"cases":[\n%s\n],\n"mirostat":[\n%s\n],\n"uniform":[\n%s\n]}\n'
                    % (transformers.__version__, torch.__version__, dump(cases), dump(draws), dump(uniforms)))
    print(len(cases), "cases,", penalised, "of DRY with a penalty, mirostat's least mu", [d["least_mu"] for d in draws])


if __name__ == "__main__":
    main()
