"""Times PyTorch's side of what cuda_training.cc times: training's operations except products and
attention, at the sizes of GPT-2 124M with 64 sequences of 1024 tokens.

    python3 bench/kernels/gradients_torch.py

Prints the TSV of cuda_ops_torch.py: what, dtype, shape, microseconds, TB/s. Bytes are those that
the operation must move, however often PyTorch moves them. Medians between two events.
"""
import statistics

import torch
import torch.nn.functional as F

ROWS, C, PARAMETERS = 65536, 768, 124439808
aten = torch.ops.aten


def microseconds(call, times=11):
    found = []
    for i in range(times):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        call()
        end.record()
        end.synchronize()
        if i >= 2:
            found.append(begin.elapsed_time(end) * 1000)
    return statistics.median(found)


def show(what, shape, moved, call):
    us = microseconds(call)
    print(f"{what}\tbf16\t{shape}\t{us:.2f}\t{moved / us * 1e-6:.3f}", flush=True)


def bf16(*shape):
    return torch.randn(*shape, device="cuda", dtype=torch.bfloat16)


def limit():
    source = torch.empty(1 << 30, dtype=torch.uint8, device="cuda").random_()
    to = torch.empty_like(source)
    show("copy of 1 GiB", 1 << 30, 2 << 30, lambda: to.copy_(source))


def activations():
    x, dy = bf16(ROWS, 4 * C), bf16(ROWS, 4 * C)
    for form in ("tanh", "none"):
        show(f"gelu {form}", f"{ROWS}x{4 * C}", 4 * x.numel(),
             lambda: F.gelu(x, approximate=form))
        show(f"gelu {form} backward", f"{ROWS}x{4 * C}", 6 * x.numel(),
             lambda: aten.gelu_backward(dy, x, approximate=form))


def layer_norm(c):
    x, dy, dx = bf16(ROWS, c), bf16(ROWS, c), bf16(ROWS, c)
    w, b = bf16(c), bf16(c)
    _, mean, scale = aten.native_layer_norm(x, [c], w, b, 1e-5)
    every = [True, True, True]

    def call():
        return aten.native_layer_norm_backward(dy, x, [c], mean, scale, w, b, every)

    show("layer_norm backward", f"{ROWS}x{c}", 6 * x.numel(), call)
    show("layer_norm backward, added", f"{ROWS}x{c}", 8 * x.numel(), lambda: dx.add_(call()[0]))


def embedding():
    dy = bf16(ROWS, C)
    drawn = torch.rand(ROWS, device="cuda", dtype=torch.float64)
    text = (50257**drawn).long() - 1
    places = torch.arange(ROWS, device="cuda") % 1024
    for what, tokens in (("", text), (" one token", torch.full_like(text, 50256))):
        moved = 4 * dy.numel() + 8 * C * (tokens.unique().numel() + 1024)
        show(f"embedding backward{what}", f"{ROWS}x{C}", moved,
             lambda: (aten.embedding_dense_backward(dy, tokens, 50264, -1, False),
                      aten.embedding_dense_backward(dy, places, 1024, -1, False)))


def cross_entropy():
    rows, columns = 16384, 50264
    logits = bf16(rows, columns).requires_grad_()
    targets = torch.arange(rows, device="cuda") * 7919 % 50257

    def call():
        return torch.autograd.grad(F.cross_entropy(logits, targets), logits)

    show("cross_entropy, forward and backward", f"{rows}x{columns}", 4 * logits.numel(), call)


def optimizer():
    p = torch.randn(PARAMETERS, device="cuda").requires_grad_()
    p.grad = torch.randn(PARAMETERS, device="cuda")
    step = torch.optim.AdamW([p], lr=1e-3, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
    step.step()
    show("clip_grad_norm_", PARAMETERS, 4 * PARAMETERS,
         lambda: torch.nn.utils.clip_grad_norm_([p], 1.0))
    show("fused AdamW", PARAMETERS, 28 * PARAMETERS, step.step)
    show("to bf16", PARAMETERS, 6 * PARAMETERS, lambda: p.detach().to(torch.bfloat16))


if __name__ == "__main__":
    limit()
    activations()
    for channels in (768, 1280, 1600):
        layer_norm(channels)
    embedding()
    cross_entropy()
    optimizer()
