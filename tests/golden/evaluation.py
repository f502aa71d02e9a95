"""Makes tests/golden/evaluation.json: what lm-eval measures of the demo model, in float32.

Run from anywhere, with lm_eval 0.4.13, torch and transformers installed:

    python tests/golden/evaluation.py

The file has the lines that gpt-eval reads and lm-eval's figures for them (tests/gpt/eval_test.cc).
Tasks are those of the package, with local files as their data sets. The loss per token and its
error, which lm-eval does not give, are computed over its windows; `divergence` is of the model with
another layer_norm_epsilon from the model as it is, over the same windows.
"""
import json
import math
import os
import pathlib
import sys
import tempfile

os.environ["HF_HUB_OFFLINE"] = "1"
sys.path.pop(0)  # kernels.py next to this file is not the package that transformers looks for
import numpy as np
import torch
import transformers
from lm_eval import simple_evaluate, utils
from lm_eval.api.metrics import mean_stderr
from lm_eval.models.huggingface import HFLM
from lm_eval.tasks.hellaswag.utils import process_docs

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODEL, CONTEXT, EPSILON = str(ROOT / "models" / "gpt-demo"), 64, 0.02

WORDS = ("the old captain and his dog walked along a quiet river while rain fell on every roof of "
         "town nobody spoke but one small lamp burned in her window until morning came").split()


def story(words):
    """Text by formula: the order of a linear congruential generator."""
    state, made = 7, []
    for _ in range(words):
        state = (state * 1103515245 + 12345) % (1 << 31)
        made.append(WORDS[(state >> 16) % len(WORDS)])
    return " ".join(made).capitalize() + "."


TEXTS = [story(12), "Gr\u00fc\u00dfe  aus\tK\u00f6ln!\n", story(400), " x ", "", story(90)]
HELLASWAG = [
    ("Baking bread", "A woman kneads dough on a table.", "she",
     ["puts it in the oven.", "throws a ball to the dog.", "[substeps] Sings  twice.", "sleeps."], 3),
    ("Rowing", "Two men sit in a boat.", "the FIRST one",
     ["takes the oars.", "reads a lamp.", "is a river.", "eats the rain and the roof."], 3),
    ("Home and Garden", "How to mend a roof [title] Find the hole. [step] Climb up.", "",
     ["Look for wet wood. [title] Cut a board.", "Stay in bed.", "Call [odd\nbracket] him.", "Run."], 2),
    ("Walking a dog", "The old man opens the door and the dog runs out.", "they",
     ["walk along the river.", "walk in the oven until it burned.", "fell.", "no."], 1),
    ("Reading", " A child opens a book. ", "\u00e9lise",
     ["turns the page.", "turns the river.", "turns.", "turns the page and the page and the page."], 3),
]
ARC = [
    ("What falls from clouds?", ["rain", "dogs", "lamps", "towns"], "ABCD", "A"),
    ("Which of these burned in the window?", ["a river", "a small lamp", "the morning"], "ABC", "B"),
    ("Who walked along the river?", ["nobody", "the old captain", "every roof", "one"], "1234", "4"),
    ("What is quiet?", ["town", "night", "a bell", "thunder"], "ABCD", "D"),
]
MMLU = [
    (" What is a captain? ", ["a man", "a river", "a roof", "a lamp"], 0, "old_ships"),
    ("When does morning come?", ["after night", "never", "at noon", "in rain"], 3, "old_ships"),
    ("Who spoke?", ["nobody", "the dog", "the town", "the rain"], 1, "quiet_rivers"),
]
CHOICE = [
    ("The old captain walked", ["along the river.", "under every lamp."], 0),
    ("Once upon a time ", ["there was a dog", "nobody", "rain " * 9 + "fell"], 2),
    (story(70), ["The dog.", "A lamp, a lamp, a lamp."], 1),
]


def lines():
    return {
        "perplexity": [dict(text=text) for text in TEXTS],
        "hellaswag": [dict(activity_label=label, ctx_a=a, ctx_b=b, endings=endings,
                           label=str(right) if right % 2 else right)
                      for label, a, b, endings, right in HELLASWAG],
        "arc": [dict(question=question, choices=dict(text=texts, label=list(labels)),
                     answerKey=key) for question, texts, labels, key in ARC],
        "mmlu": [dict(question=question, choices=choices, answer=answer, subject=subject)
                 for question, choices, answer, subject in MMLU],
        "choice": [dict(context=context, choices=choices, answer=answer)
                   for context, choices, answer in CHOICE],
    }


def task_of(name, path, subject):
    metrics = [dict(metric=m, aggregation="mean", higher_is_better=True) for m in ("acc", "acc_norm")]
    task = dict(task=name, dataset_path="json", dataset_kwargs=dict(data_files=dict(test=path)),
                test_split="test", output_type="multiple_choice", metric_list=metrics)
    if name == "perplexity":
        task.update(output_type="loglikelihood_rolling", doc_to_text="", doc_to_target="{{text}}",
                    metric_list=[dict(metric=m, aggregation=a) for m, a in (
                        ("word_perplexity", "weighted_perplexity"),
                        ("byte_perplexity", "weighted_perplexity"),
                        ("bits_per_byte", "bits_per_byte"))])
    elif name == "hellaswag":
        task.update(process_docs=process_docs, doc_to_text="{{query}}", doc_to_target="{{label}}",
                    doc_to_choice="choices")
    elif name == "arc":
        task.update(doc_to_text="Question: {{question}}\nAnswer:",
                    doc_to_target="{{choices.label.index(answerKey)}}",
                    doc_to_choice="{{choices.text}}")
    elif name == "mmlu":
        task.update(
            description="The following are multiple choice questions (with answers) about "
                        f"{subject.replace('_', ' ')}.\n\n",
            doc_to_text="{{question.strip()}}\nA. {{choices[0]}}\nB. {{choices[1]}}\n"
                        "C. {{choices[2]}}\nD. {{choices[3]}}\nAnswer:",
            doc_to_choice=["A", "B", "C", "D"], doc_to_target="answer")
    else:
        task.update(doc_to_text="{{context}}", doc_to_target="answer", doc_to_choice="choices")
    return task


def evaluate(lm, name, of_lines):
    """lm-eval's results of one task, and the log-likelihoods of its questions' choices."""
    subject = of_lines[0].get("subject")
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
        for line in of_lines:
            line = {**line, "label": int(line["label"])} if name == "hellaswag" else line
            file.write(json.dumps(line) + "\n")
        file.flush()
        found = simple_evaluate(lm, tasks=[task_of(name, file.name, subject)], bootstrap_iters=0 if name == "perplexity" else 2,
                                log_samples=True)
    results = {key.replace(",none", ""): value for key, value in found["results"][name].items()
               if isinstance(value, float)}
    # resps: [[(log-likelihood, is greedy)]] per choice
    return results, [[float(r[0][0]) for r in sample["resps"]] for sample in found["samples"][name]
                     if name != "perplexity"]


def with_errors(lm, name, of_lines):
    """MMLU's subjects are tasks of their own: the mean and its error are of all questions."""
    if name != "mmlu":
        results, likelihoods = evaluate(lm, name, of_lines)
    else:
        likelihoods = []
        for subject in dict.fromkeys(line["subject"] for line in of_lines):
            likelihoods += evaluate(lm, name, [l for l in of_lines if l["subject"] == subject])[1]
        right = [float(np.argmax(l) == line["answer"]) for l, line in zip(likelihoods, of_lines)]
        results = dict(acc=float(np.mean(right)), acc_stderr=mean_stderr(right))
    return results, likelihoods


def logits_of(model, lm, text):
    """The rows of lm-eval's windows that predict a token, and the tokens."""
    windows = map(utils.make_disjoint_window, utils.get_rolling_token_windows(
        lm.tok_encode(text), lm.prefix_token_id, CONTEXT, 1))
    for context, continuation in windows:
        ids = torch.tensor([(context + continuation)[-(CONTEXT + 1):][:-1]])
        with torch.no_grad():
            yield (model(ids).logits[0, -len(continuation):].double().log_softmax(-1),
                   torch.tensor(continuation))


def moments(values):
    values = torch.cat(values)
    return values.mean().item(), (values.std() / math.sqrt(len(values))).item()


def main():
    torch.set_num_threads(1)
    lm = HFLM(pretrained=MODEL, dtype="float32", device="cpu", batch_size=1, max_length=CONTEXT)
    other = transformers.GPT2LMHeadModel.from_pretrained(
        MODEL, dtype=torch.float32, layer_norm_epsilon=EPSILON).eval()
    out = dict(context=CONTEXT, epsilon=EPSILON, lines=lines(), results={}, likelihoods={})
    for name, of_lines in out["lines"].items():
        out["results"][name], out["likelihoods"][name] = with_errors(lm, name, of_lines)
    loss, kl, changed = [], [], []
    for text in TEXTS:
        for (p, ids), (q, _) in zip(logits_of(lm.model, lm, text), logits_of(other, lm, text)):
            loss.append(-p[torch.arange(len(ids)), ids])
            kl.append((p.exp() * (p - q)).sum(-1))
            changed.append((p.argmax(-1) != q.argmax(-1)).double())
    tokens = out["results"]["perplexity"]
    tokens["tokens"] = len(torch.cat(loss))
    tokens["loss"], tokens["loss_stderr"] = moments(loss)
    out["divergence"] = dict(kl_divergence_max=torch.cat(kl).max().item())
    for name, values in (("kl_divergence", kl), ("changed_top_1", changed)):
        out["divergence"][name], out["divergence"][name + "_stderr"] = moments(values)
    path = ROOT / "tests" / "golden" / "evaluation.json"
    path.write_text(json.dumps(out, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
