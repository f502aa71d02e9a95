"""Compares gpt-train with PyTorch in float32 at the full size of GPT-2 124M, as llm.c's test does.

    python3 tests/accuracy/gpt_train_full.py --bin build/bin [--device cuda]

Needs torch and transformers. A model with random weights takes ten steps of AdamW on one batch of
4 x 64 tokens, clipped to a norm of 1. The losses must agree within 1e-5 of the largest, and each of
the 16 kinds of gradients of the first step within 1e-4 of its norm: they are read from the first
checkpoint, whose first moment is (1 - beta1) times the clipped gradient. On a GPU the losses in
bf16 are shown next to those of PyTorch's autocast.
"""
import argparse
import pathlib
import struct
import subprocess
import sys
import tempfile

import numpy as np
import torch
import transformers
from safetensors.torch import load_file

BATCH, LENGTH, STEPS, RATE, BETAS, DECAY = 4, 64, 10, 1e-4, (0.9, 0.95), 0.1
MATRICES = ["attn.c_attn.weight", "attn.c_proj.weight", "mlp.c_fc.weight", "mlp.c_proj.weight"]
VECTORS = ["ln_1.weight", "ln_1.bias", "attn.c_attn.bias", "attn.c_proj.bias", "ln_2.weight",
           "ln_2.bias", "mlp.c_fc.bias", "mlp.c_proj.bias"]


def write_tokens(path, ids):
    header = struct.pack("<3i", 20240520, 1, len(ids)) + bytes(1024 - 12)
    path.write_bytes(header + ids.astype(np.uint16).tobytes())


def reference(folder, ids, device, mixed):
    """The ten losses, and the clipped gradients of the first step by name."""
    model = transformers.GPT2LMHeadModel.from_pretrained(folder, dtype=torch.float32)
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    model.to(device).train()
    matrices = [p for p in model.parameters() if p.dim() == 2]
    others = [p for p in model.parameters() if p.dim() != 2]
    optimizer = torch.optim.AdamW([{"params": matrices, "weight_decay": DECAY},
                                   {"params": others, "weight_decay": 0.0}], lr=RATE, betas=BETAS)
    rows = torch.tensor(ids.astype(np.int64), device=device)
    inputs, targets = rows[:-1].view(BATCH, LENGTH), rows[1:].view(BATCH, LENGTH)
    losses, gradients = [], {}
    for _ in range(STEPS):
        optimizer.zero_grad()
        with torch.autocast(device, torch.bfloat16, enabled=mixed):
            logits = model(inputs).logits
            loss = torch.nn.functional.cross_entropy(logits.view(-1, logits.shape[-1]),
                                                     targets.reshape(-1))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        if not gradients:
            gradients = {name.removeprefix("transformer."): p.grad.float().cpu().numpy()
                         for name, p in model.named_parameters()}
        optimizer.step()
        losses.append(loss.item())
    return losses, gradients


def ours(args, folder, dtype):
    """The ten losses, and what gpt-train's first checkpoint says of the gradients, one vector."""
    out = folder / f"run-{dtype}"
    result = subprocess.run(
        [f"{args.bin}/gpt-train", "--train", folder / "tokens.bin", "--model", f"{folder}/model/",
         "--sequence-length", str(LENGTH), "--batch-size", str(BATCH), "--steps", str(STEPS), "--learning-rate",
         str(RATE), "--schedule", "constant", "--weight-decay", str(DECAY), "--clip", "1",
         "--beta1", str(BETAS[0]), "--beta2", str(BETAS[1]), "--save-every", "1", "--keep", "20",
         "--device", args.device, "--dtype", dtype, "--output-dir", out],
        check=True, capture_output=True, text=True)
    losses = [float(line.split("\t")[1]) for line in result.stdout.splitlines()[1:]]
    moment = load_file(out / "step-00000001" / "optimizer.safetensors")["m"].numpy()
    return losses, moment / (1 - BETAS[0])


def gradients_of(moment, expected, config):
    """gpt-train's flat vector by name: tables, the blocks' matrices (out, in), then vectors."""
    found, at = {}, 0

    def take(name, rows, columns=None):
        nonlocal at
        size = rows * (columns or 1)
        found[name] = moment[at:at + size].reshape(rows, columns) if columns else \
            moment[at:at + size]
        at += size

    c = config.n_embd
    take("wte.weight", config.vocab_size, c)
    take("wpe.weight", config.n_positions, c)
    for names in MATRICES, VECTORS:
        for i in range(config.n_layer):
            for name in names:
                shape = expected[f"h.{i}.{name}"].shape
                take(f"h.{i}.{name}", *reversed(shape))
    for name in "ln_f.weight", "ln_f.bias":
        take(name, c)
    assert at == len(moment), (at, len(moment))
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", default="build/bin")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    args = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.manual_seed(1)
    failed = False
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        config = transformers.GPT2Config()
        transformers.GPT2LMHeadModel(config).save_pretrained(folder / "model")
        ids = np.random.default_rng(1).integers(0, config.vocab_size, BATCH * LENGTH + 1)
        write_tokens(folder / "tokens.bin", ids)
        losses, gradients = reference(folder / "model", ids, args.device, False)
        found, moment = ours(args, folder, "f32")
        apart = max(abs(a - b) for a, b in zip(losses, found))
        limit = 1e-5 * max(losses)
        failed |= apart > limit
        print(f"losses\t{losses[0]:.6f} to {losses[-1]:.6f}\tapart {apart:.2e}\tlimit {limit:.1e}")
        named = gradients_of(moment, gradients, config)
        norms = [sum(float((g.astype(np.float64) ** 2).sum()) for g in all_of.values()) ** 0.5
                 for all_of in (named, gradients)]
        print(f"norm of the gradients clipped to 1\t{norms[0]:.7f}\tPyTorch's {norms[1]:.7f}")
        for kind in ["wte.weight", "wpe.weight", *MATRICES, *VECTORS, "ln_f.weight", "ln_f.bias"]:
            names = [n for n in gradients if n == kind or n.startswith("h.") and
                     n.split(".", 2)[2] == kind]
            difference = size = 0.0
            for n in names:
                expected = gradients[n].T if kind in MATRICES else gradients[n]
                difference += float(((named[n] - expected).astype(np.float64) ** 2).sum())
                size += float((expected.astype(np.float64) ** 2).sum())
            apart = (difference / size) ** 0.5
            failed |= apart > 1e-4
            print(f"{kind}\tapart {apart:.2e}\tlimit 1e-4")
        if args.device == "cuda":
            theirs = reference(folder / "model", ids, args.device, True)[0]
            half = ours(args, folder, "bf16")[0]
            for what, all_losses in ("bf16, PyTorch's autocast", theirs), ("bf16, gpt-train", half):
                apart = max(abs(a - b) for a, b in zip(losses, all_losses))
                print(f"{what}\tlosses apart {apart:.2e}")
    sys.exit(failed)


if __name__ == "__main__":
    main()
