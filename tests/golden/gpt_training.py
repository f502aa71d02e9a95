"""Makes tests/golden/gpt_training.json: a training step's reference, by transformers in float32.

Run from anywhere, with torch and transformers installed:

    python tests/golden/gpt_training.py

The demo model with 3 sequences of 40 tokens given by a formula: the losses of all rows, for each of
the 16 kinds of parameters (all layers' together, in the layers' order, as llm.c stacks them) the
norm of the gradient of the mean loss and values at even distances, and the losses of ten steps of
AdamW on the same batch, the gradients clipped to a norm of 1. Then how far the same model in
bfloat16 is from that: the root mean square of the losses' differences, and for each kind the
difference of the gradients at these places over their size; and how far ten steps are whose
parameters stay in float32, the losses' largest difference and the norms' largest relative one.
"""
import json
import pathlib
import sys

sys.path.pop(0)  # kernels.py next to this file is not the package that transformers looks for
import torch
import transformers

ROOT = pathlib.Path(__file__).resolve().parents[2]
SEQUENCES, LENGTH, LISTED = 3, 40, 97
RATE, BETAS, EPS, DECAY, CLIP = 1e-3, (0.9, 0.95), 1e-8, 0.1, 1.0
KINDS = ["ln_1.weight", "ln_1.bias", "attn.c_attn.weight", "attn.c_attn.bias", "attn.c_proj.weight",
         "attn.c_proj.bias", "ln_2.weight", "ln_2.bias", "mlp.c_fc.weight", "mlp.c_fc.bias",
         "mlp.c_proj.weight", "mlp.c_proj.bias"]


def load():
    model = transformers.GPT2LMHeadModel.from_pretrained(
        ROOT / "models" / "gpt-demo", dtype=torch.float32, attn_implementation="eager")
    model.train()
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    return model


def losses_of(model, inputs, targets, reduction):
    logits = model(inputs).logits
    return torch.nn.functional.cross_entropy(
        logits.reshape(-1, logits.shape[-1]), targets.reshape(-1), reduction=reduction)


def listed_gradients(model):
    """For each kind the whole gradient, flat, and LISTED of its values."""
    named = dict(model.named_parameters())
    kinds = {kind: [named[f"transformer.h.{i}.{kind}"] for i in range(model.config.n_layer)]
             for kind in KINDS}
    for name in ["wte.weight", "wpe.weight", "ln_f.weight", "ln_f.bias"]:
        kinds[name] = [named["transformer." + name]]
    found = {}
    for kind, parameters in kinds.items():
        # Matrices (out, in), as hark keeps them: Conv1D has them the other way round.
        flat = torch.cat([(p.grad.T if p.dim() == 2 and kind not in ("wte.weight", "wpe.weight")
                           else p.grad).reshape(-1) for p in parameters])
        found[kind] = flat, flat[[i * (flat.numel() - 1) // (LISTED - 1) for i in range(LISTED)]]
    return found


def ten_steps(inputs, targets, dtype):
    """Losses and norms of a model in `dtype`, rounded before every step from float32 parameters."""
    master, model = load(), load().to(dtype)
    matrices = [p for p in master.parameters() if p.dim() == 2]
    others = [p for p in master.parameters() if p.dim() != 2]
    optimizer = torch.optim.AdamW([{"params": matrices, "weight_decay": DECAY},
                                   {"params": others, "weight_decay": 0.0}],
                                  lr=RATE, betas=BETAS, eps=EPS)
    steps, norms = [], []
    for _ in range(10):
        with torch.no_grad():
            for rounded, parameter in zip(model.parameters(), master.parameters()):
                rounded.copy_(parameter)
        model.zero_grad()
        loss = losses_of(model, inputs, targets, "none").float().mean()
        loss.backward()
        for rounded, parameter in zip(model.parameters(), master.parameters()):
            parameter.grad = rounded.grad.float()
        norms.append(torch.nn.utils.clip_grad_norm_(master.parameters(), CLIP).item())
        optimizer.step()
        steps.append(loss.item())
    return steps, norms


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = load()
    ids = torch.tensor([[(977 * (i * LENGTH + j) * (j + 3) + 13) % 4096 for j in range(LENGTH + 1)]
                        for i in range(SEQUENCES)])
    inputs, targets = ids[:, :-1], ids[:, 1:]
    losses = losses_of(model, inputs, targets, "none")
    losses.mean().backward()
    gradients = {kind: {"norm": flat.double().norm().item(),
                        "listed": [float(f"{v:.8g}") for v in listed.tolist()]}
                 for kind, (flat, listed) in listed_gradients(model).items()}
    steps, norms = ten_steps(inputs, targets, torch.float32)
    half_steps, half_norms = ten_steps(inputs, targets, torch.bfloat16)
    half = load().to(torch.bfloat16)
    half_losses = losses_of(half, inputs, targets, "none").float()
    losses_of(half, inputs, targets, "mean").backward()
    half_gradients = listed_gradients(half)
    apart = {}
    for kind, (_, listed) in half_gradients.items():
        reference = torch.tensor(gradients[kind]["listed"], dtype=torch.float64)
        apart[kind] = ((listed.double() - reference).norm() / reference.norm()).item()
    bf16 = {"losses": (half_losses - losses.detach()).square().mean().sqrt().item(),
            "gradients": apart,
            "steps": max(abs(a - b) for a, b in zip(steps, half_steps)),
            "norms": max(abs(a - b) / b for a, b in zip(norms, half_norms))}
    golden = {"ids": ids.tolist(), "losses": [round(v, 6) for v in losses.tolist()],
              "gradients": gradients, "rate": RATE, "betas": BETAS, "eps": EPS, "decay": DECAY,
              "clip": CLIP, "steps": [round(v, 7) for v in steps],
              "norms": [round(v, 6) for v in norms], "bf16": bf16}
    path = ROOT / "tests" / "golden" / "gpt_training.json"
    path.write_text(json.dumps(golden, indent=None, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
