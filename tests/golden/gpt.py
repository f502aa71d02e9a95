"""Makes tests/golden/gpt.json: GPT-2's reference on the demo model, by transformers in float32.

Run from anywhere, with torch, transformers and tokenizers installed:

    python tests/golden/gpt.py

For 20 prompts: the ids, 200 greedy tokens (the end-of-text token does not stop them), and logits at
the last prompt position and one in the middle: the 20 largest and 50 listed ids. "margin" is the
smallest distance between the two largest logits over all greedy steps. For small vectors of logits:
what transformers' logits processors and warpers leave of them.
"""
import json
import pathlib

import tokenizers
import torch
import transformers
from transformers.generation.logits_process import (
    MinPLogitsWarper,
    RepetitionPenaltyLogitsProcessor,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODEL = ROOT / "models" / "gpt-demo"
NEW_TOKENS = 200
LISTED = [(i * 977 + 13) % 4096 for i in range(50)]

PROMPTS = [
    "Once upon a time",
    "The old man looked at the sea and",
    "\"Where have you been?\" said the king.",
    "a",
    "In the middle of the forest there stood a house, and in the house there lived",
    "It was a dark night.\n\nThe wind",
    "1984",
    "My dear Watson,",
    "CHAPTER I.\n\n",
    "There were three brothers: the eldest was strong, the second was clever, and the youngest",
    "Größe und Übermut",
    "Привет",
    "😀",
    "She opened the door, and there, to her great surprise, was a",
    "    indented   text\twith\ttabs\n",
    "What shall we do now? ",
    "I don't know; I've never seen it, and they'll never tell us.",
    "the the the the the the",
    "And so my fellow Americans, ask not what your country can do for you, ask what you can do for your country.",
    " ".join(["The miller's daughter went down to the river and washed the linen, and sang a song of the mountains."] * 8),
]


def position(logits):
    values, ids = torch.topk(logits, 20)
    return {"top_ids": ids.tolist(), "top": [round(v, 5) for v in values.tolist()],
            "listed": [round(v, 5) for v in logits[LISTED].tolist()]}


@torch.no_grad()
def reference(model, tokenizer, prompt):
    ids = tokenizer.encode(prompt, add_special_tokens=False).ids
    out = model(torch.tensor([ids]), use_cache=True)
    middle = len(ids) // 2
    case = {"prompt": prompt, "ids": ids, "middle": middle, "at_middle": position(out.logits[0, middle]),
            "at_last": position(out.logits[0, -1])}
    tokens, margin = [], float("inf")
    while True:
        best, ids_best = torch.topk(out.logits[0, -1], 2)
        margin = min(margin, (best[0] - best[1]).item())
        tokens.append(ids_best[0].item())
        if len(tokens) == NEW_TOKENS:
            break
        out = model(torch.tensor([[tokens[-1]]]), past_key_values=out.past_key_values, use_cache=True)
    case["tokens"], case["margin"] = tokens, round(margin, 6)
    return case


def samplers():
    torch.manual_seed(11)
    cases = []

    def add(name, value, processor, scores, history=(0,)):
        result = processor(torch.tensor([list(history)]), scores.clone()[None])[0]
        cases.append({"filter": name, "value": value, "history": list(history), "logits": scores.tolist(),
                      "result": [None if x == float("-inf") else x for x in result.tolist()]})

    for n in (5, 37):
        scores = torch.randn(n) * 3
        for value in (0.1, 0.8, 1.0, 1.7):
            add("temperature", value, TemperatureLogitsWarper(value), scores)
        for value in (1, 3, 40):
            add("top_k", value, TopKLogitsWarper(value), scores)
        for value in (0.05, 0.3, 0.9, 0.999):
            add("top_p", value, TopPLogitsWarper(value), scores)
        for value in (0.01, 0.1, 0.5, 1.0):
            add("min_p", value, MinPLogitsWarper(value), scores)
        for value in (0.8, 1.3, 2.0):
            add("repetition_penalty", value, RepetitionPenaltyLogitsProcessor(value), scores, (0, 3, 3, 1, 0))
    ties = torch.tensor([1.0, 2.0, 2.0, 0.0, 2.0])
    add("top_k", 2, TopKLogitsWarper(2), ties)
    add("min_p", 1.0, MinPLogitsWarper(1.0), ties)
    # All of them in the order that transformers' generate() gives them.
    scores, history = torch.randn(60) * 4, (2, 5, 5, 59)
    chained = RepetitionPenaltyLogitsProcessor(1.2)(torch.tensor([history]), scores.clone()[None])
    for warper in (TemperatureLogitsWarper(0.7), TopKLogitsWarper(20), TopPLogitsWarper(0.9), MinPLogitsWarper(0.02)):
        chained = warper(torch.tensor([history]), chained)
    cases.append({"filter": "all", "value": 0, "history": list(history), "logits": scores.tolist(),
                  "result": [None if x == float("-inf") else x for x in chained[0].tolist()]})
    return cases


def main():
    torch.set_num_threads(1)
    tokenizer = tokenizers.Tokenizer.from_file(str(MODEL / "tokenizer.json"))
    model = transformers.GPT2LMHeadModel.from_pretrained(MODEL, torch_dtype=torch.float32, attn_implementation="eager")
    model.eval()
    cases = [reference(model, tokenizer, prompt) for prompt in PROMPTS]
    assert all(len(case["ids"]) + NEW_TOKENS <= model.config.n_positions for case in cases)
    margin = min(case["margin"] for case in cases)
    print("prompts", len(cases), "longest", max(len(c["ids"]) for c in cases), "smallest margin", margin)
    out = ROOT / "tests" / "golden" / "gpt.json"
    dump = lambda items: ",\n".join(json.dumps(item, separators=(",", ":")) for item in items)
    out.write_text('{"made_with":"transformers %s, torch %s","margin":%s,"listed_ids":%s,\n"cases":[\n%s\n],\n"samplers":[\n%s\n]}\n'
                   % (transformers.__version__, torch.__version__, margin, json.dumps(LISTED, separators=(",", ":")),
                      dump(cases), dump(samplers())))


if __name__ == "__main__":
    main()
