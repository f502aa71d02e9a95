"""Times PyTorch's linear and attention at the sizes of cuda_ops.cc, and the card's limits.

    python3 bench/kernels/cuda_ops_torch.py

Prints the same TSV: what, dtype, shape, microseconds, TFLOP/s, TB/s. Run both on one machine, one
after the other. Every figure is the median of replays of a CUDA graph of calls over rotating
inputs, as in cuda_ops.cc.
"""
import statistics

import torch
import torch.nn.functional as F

CALLS, REPLAYS, ROTATED = 24, 9, 300 << 20


def microseconds(call):
    for i in range(3):
        call(i)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for i in range(CALLS):
            call(i)
    times = []
    for i in range(REPLAYS + 2):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        graph.replay()
        end.record()
        end.synchronize()
        if i >= 2:
            times.append(begin.elapsed_time(end) * 1000 / CALLS)
    return statistics.median(times)


def show(what, dtype, shape, us, flops, moved):
    name = {torch.float16: "f16", torch.bfloat16: "bf16", torch.float32: "f32"}[dtype]
    print(f"{what}\t{name}\t{shape}\t{us:.2f}\t{flops / us * 1e-6:.1f}\t{moved / us * 1e-6:.3f}",
          flush=True)


def rotated(make):
    made = [make()]
    size = sum(t.numel() * t.element_size() for t in made[0])
    while len(made) * size < ROTATED and len(made) < CALLS:
        made.append(make())
    return made


def linear(what, t, n, k, dtype, act=None, residual=False):
    x = torch.randn(t, k, device="cuda", dtype=dtype)
    b = torch.randn(n, device="cuda", dtype=dtype)
    r = torch.randn(t, n, device="cuda", dtype=dtype)
    ws = rotated(lambda: [torch.randn(n, k, device="cuda", dtype=dtype)])

    def call(i):
        y = F.linear(x, ws[i % len(ws)][0], b)
        if act:
            y = F.gelu(y, approximate=act)
        return y + r if residual else y

    moved = (t * k + t * n * (2 if residual else 1) + n * k) * x.element_size()
    show(what, dtype, f"{t}x{k}x{n}", microseconds(call), 2 * t * n * k, moved)


def attention(what, b, h, queries, length, d, dtype, causal=False):
    q = torch.randn(b, h, queries, d, device="cuda", dtype=dtype)
    kv = rotated(lambda: [torch.randn(b, h, length, d, device="cuda", dtype=dtype)
                          for _ in range(2)])
    square = causal and queries == length  # torch's causal mask begins at the first key

    def call(i):
        keys, values = kv[i % len(kv)]
        return F.scaled_dot_product_attention(q, keys, values, is_causal=square)

    pairs = queries * length * (0.5 if square else 1)
    moved = 2 * (q.numel() + kv[0][0].numel()) * q.element_size()
    show(what, dtype, f"B{b} H{h} T{queries} S{length} D{d}", microseconds(call),
         4 * b * h * d * pairs, moved)


def limits():
    for dtype in (torch.float16, torch.bfloat16):
        a, b = (torch.randn(8192, 8192, device="cuda", dtype=dtype) for _ in range(2))
        show("limit product", dtype, "8192x8192x8192", microseconds(lambda i: a @ b), 2 * 8192**3,
             3 * 2 * 8192**2)
    a = torch.randn(1 << 29, device="cuda")
    b = torch.empty_like(a)
    show("limit copy", torch.float32, "2 GiB", microseconds(lambda i: torch.neg(a, out=b)), 0, 2 * a.nbytes)


def main():
    print("what\tdtype\tshape\tus\tTFLOP/s\tTB/s")
    limits()
    half, brain, single = torch.float16, torch.bfloat16, torch.float32
    for dtype in (half, brain):
        linear("linear", 1500, 1280, 1280, dtype)
        linear("linear+residual", 1500, 1280, 5120, dtype, residual=True)
        linear("linear+gelu", 1500, 5120, 1280, dtype, "none")
        linear("linear+gelu_tanh", 1500, 5120, 1280, dtype, "tanh")
        linear("linear+gelu", 12000, 5120, 1280, dtype, "none")
    linear("linear+gelu", 1500, 5120, 1280, single, "none")
    for t in (1, 4, 8, 9, 16, 32):
        linear("linear", t, 1280, 1280, half)
        linear("linear+gelu", t, 5120, 1280, half, "none")
        linear("linear", t, 51866, 1280, half)
    for dtype in (half, brain, single):
        attention("attention", 8, 20, 1500, 1500, 64, dtype)
        attention("attention causal", 8, 12, 1024, 1024, 64, dtype, causal=True)
        attention("attention", 8, 16, 1024, 1024, 128, dtype)
    for b in (1, 8, 64):
        attention("attention decode", b, 20, 1, 1500, 64, half)
        attention("attention decode", b, 20, 1, 224, 64, half, causal=True)


if __name__ == "__main__":
    with torch.inference_mode():
        main()
