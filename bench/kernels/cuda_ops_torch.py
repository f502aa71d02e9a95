"""Times PyTorch's operations at the sizes of cuda_ops.cc, and the card's limits.

    python3 bench/kernels/cuda_ops_torch.py [WORD...]

Words choose the operations whose names begin with one of them. Prints the same TSV: what, dtype,
shape, microseconds, TFLOP/s, TB/s. Run both on one machine, one after the other. Every figure is
the median of replays of a CUDA graph of calls over rotating inputs, as in cuda_ops.cc.
"""
import statistics
import sys

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


def chosen(what):
    return len(sys.argv) == 1 or what.startswith(tuple(sys.argv[1:]))


def linear(what, t, n, k, dtype, act=None, residual=False):
    if not chosen(what):
        return
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


def norm_linear(what, t, n, k, dtype, act=None):
    """A norm first; keys and values go to their caches by append_cache()."""
    if not chosen(what):
        return
    x = torch.randn(t, k, device="cuda", dtype=dtype)
    norm = [torch.randn(k, device="cuda", dtype=dtype) for _ in range(2)]
    b = torch.randn(n, device="cuda", dtype=dtype)
    ws = rotated(lambda: [torch.randn(n, k, device="cuda", dtype=dtype)])

    def call(i):
        y = F.linear(F.layer_norm(x, (k,), *norm), ws[i % len(ws)][0], b)
        return F.gelu(y) if act else y

    show(what, dtype, f"{t}x{k}x{n}", microseconds(call), 2 * t * n * k,
         (t * k + t * n + n * k) * x.element_size())


def attention(what, b, h, queries, length, d, dtype, causal=False):
    if not chosen(what):
        return
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


def absorbed_attention(b, h, queries, dtype):
    """As our operation absorbs it, and attention over stored keys and values, which need no weights."""
    frames, c = 1500, 64 * h
    q = torch.randn(b, queries, h, 64, device="cuda", dtype=dtype)
    if chosen("absorbed_attention"):
        encoder_out = torch.randn(b, frames, c, device="cuda", dtype=dtype)
        kv = rotated(lambda: [torch.randn(2, h, 64, c, device="cuda", dtype=dtype)])
        bias = torch.randn(h, 1, 64, device="cuda", dtype=dtype)

        def call(i):
            keys, values = kv[i % len(kv)][0]
            absorbed = q.permute(2, 0, 1, 3).reshape(h, b * queries, 64) @ keys
            absorbed = absorbed.view(h, b, queries, c).permute(1, 0, 2, 3).reshape(b, h * queries, c)
            scores = absorbed @ encoder_out.mT * (0.125 / c**0.5)
            mixed = (scores.softmax(-1) @ encoder_out).view(b, h, queries, c)
            mixed = mixed.permute(1, 0, 2, 3).reshape(h, b * queries, c)
            return (mixed @ values.mT + bias).permute(1, 0, 2).reshape(b * queries, c)

        show("absorbed_attention", dtype, f"B{b} H{h} T{queries} S{frames}", microseconds(call),
             4 * b * queries * h * c * (frames + 64),
             (2 * q.numel() + encoder_out.numel() + kv[0][0].numel()) * q.element_size())
    attention("absorbed_attention stored", b, h, queries, frames, 64, dtype)


def layer_norm(t, c, dtype):
    if not chosen("layer_norm"):
        return
    xs = rotated(lambda: [torch.randn(t, c, device="cuda", dtype=dtype)])
    ys = [None] * len(xs)  # kept, so that results are not written to one place again and again
    w, b = (torch.randn(c, device="cuda", dtype=dtype) for _ in range(2))

    def call(i):
        ys[i % len(xs)] = F.layer_norm(xs[i % len(xs)][0], (c,), w, b)

    show("layer_norm", dtype, f"{t}x{c}", microseconds(call), 0, 2 * xs[0][0].nbytes)


def conv1d(b, t, c, n, stride, x_dtype, dtype):
    if not chosen("conv1d"):
        return
    xs = rotated(lambda: [torch.randn(b, c, t, device="cuda", dtype=x_dtype)])
    w = torch.randn(n, c, 3, device="cuda", dtype=dtype)
    bias = torch.randn(n, device="cuda", dtype=dtype)

    def call(i):
        x = xs[i % len(xs)][0].to(dtype)
        return F.gelu(F.conv1d(x, w, bias, stride=stride, padding=1))

    y_bytes = b * (t // stride) * n * w.element_size()
    show("conv1d+gelu", dtype, f"B{b} {t}x{c}->{n} stride {stride}", microseconds(call),
         2 * 3 * b * (t // stride) * n * c, xs[0][0].nbytes + w.nbytes + y_bytes)


def append_cache(b, h, queries, capacity, d, dtype):
    if not chosen("append_cache"):
        return
    xs = rotated(lambda: [torch.randn(b, queries, 3, h, d, device="cuda", dtype=dtype)])
    caches = rotated(lambda: [torch.randn(2, b, h, capacity, d, device="cuda", dtype=dtype)])

    def call(i):
        both = xs[i % len(xs)][0][:, :, 1:].permute(2, 0, 3, 1, 4)
        caches[i % len(caches)][0][:, :, :, capacity - queries:].copy_(both)

    show("append_cache", dtype, f"B{b} H{h} T{queries} S{capacity} D{d}", microseconds(call), 0,
         4 * b * queries * h * d * xs[0][0].element_size())


def copy_cache(b, h, length, d, dtype):
    if not chosen("copy_cache"):
        return
    caches = rotated(lambda: [torch.randn(b, h, 448, d, device="cuda", dtype=dtype)])
    source = (torch.arange(b, device="cuda") - 1) % b

    def call(i):
        kept = caches[i % len(caches)][0][:, :, :length]
        kept.copy_(kept.index_select(0, source))

    show("copy_cache", dtype, f"B{b} H{h} S{length} D{d}", microseconds(call), 0,
         2 * b * h * length * d * caches[0][0].element_size())


def attention_scores(b, h, queries, n, dtype):
    if not chosen("attention_scores"):
        return
    keys = rotated(lambda: [torch.randn(b, h, 1500, 64, device="cuda", dtype=dtype)])
    q = torch.randn(b, h, queries, 64, device="cuda", dtype=dtype)

    def call(i):
        return (q[:, :n] @ keys[i % len(keys)][0][:, :n].mT * 0.125).float()

    show("attention_scores", dtype, f"B{b} n{n} T{queries} S1500", microseconds(call),
         2 * b * n * queries * 1500 * 64,
         4 * b * n * queries * 1500 + b * n * 64 * (queries + 1500) * q.element_size())


def embedding(t, c, dtype):
    if not chosen("embedding"):
        return
    table = torch.randn(51866, c, device="cuda", dtype=dtype)
    positions = torch.randn(448, c, device="cuda", dtype=dtype)
    tokens = torch.arange(t, device="cuda") * 7919 % 51866
    places = torch.arange(t, device="cuda") % 448
    show("embedding", dtype, f"{t}x{c}", microseconds(lambda i: table[tokens] + positions[places]),
         0, (2 * t + min(t, 448)) * c * table.element_size())


def add_positions(b, t, c, dtype):
    if not chosen("add_positions"):
        return
    xs = rotated(lambda: [torch.randn(b, t, c, device="cuda", dtype=dtype)])
    positions = torch.randn(t, c, device="cuda", dtype=dtype)
    show("add_positions", dtype, f"B{b} {t}x{c}",
         microseconds(lambda i: xs[i % len(xs)][0].add_(positions)), 0,
         (2 * b + 1) * t * c * positions.element_size())


def select_rows(n, c, dtype):
    if not chosen("select_rows"):
        return
    xs = rotated(lambda: [torch.randn(4 * n, c, device="cuda", dtype=dtype)])
    wanted = torch.arange(n, device="cuda") * 4 + 3
    show("select_rows", dtype, f"{n}x{c}",
         microseconds(lambda i: xs[i % len(xs)][0].index_select(0, wanted)), 0,
         2 * n * c * xs[0][0].element_size())


def choose(n):
    """The likeliest token, its log probability, and whether timestamps are likelier than text."""
    if not chosen("choose"):
        return
    vocabulary, timestamps = 51866, 50365
    logits = rotated(lambda: [torch.randn(n, vocabulary, device="cuda")])

    def call(i):
        logs = logits[i % len(logits)][0].log_softmax(-1)
        stamps = logs[:, timestamps:].logsumexp(-1) > logs[:, :timestamps].max(-1).values
        return stamps, logs.max(-1)

    show("choose", torch.float32, f"{n}x{vocabulary}", microseconds(call), 0, 4 * n * vocabulary)


def rows():
    half, single = torch.float16, torch.float32
    for t in (1, 64, 1500, 12000):
        layer_norm(t, 1280, half)
    layer_norm(12000, 1280, single)
    layer_norm(1500, 384, half)
    for b in (1, 8):
        conv1d(b, 3000, 128, 1280, 1, single, half)
        conv1d(b, 3000, 1280, 1280, 2, half, half)
    append_cache(8, 20, 1500, 1500, 64, half)
    for b in (1, 64):
        append_cache(b, 20, 1, 448, 64, half)
    for b in (5, 40):
        copy_cache(b, 20, 100, 64, half)
    for b in (1, 8):
        attention_scores(b, 20, 100, 10, half)
    for t in (1, 128, 1024):
        embedding(t, 1280, half)
    add_positions(16, 1500, 1280, half)
    for n in (1, 128):
        select_rows(n, 1280, half)
    for n in (1, 8, 128):
        choose(n)


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
        for t in (1500, 12000, 24000):
            linear("many linear", t, 1280, 1280, dtype)
            linear("many linear+residual", t, 1280, 1280, dtype, residual=True)
            linear("many linear", t, 3840, 1280, dtype)
            linear("many linear", t, 5120, 1280, dtype)
            linear("many linear+gelu", t, 5120, 1280, dtype, "none")
            linear("many linear+gelu_tanh", t, 5120, 1280, dtype, "tanh")
            linear("many linear+residual", t, 1280, 5120, dtype, residual=True)
    linear("many linear+gelu", 1500, 5120, 1280, single, "none")
    for dtype in (half, brain, single):
        for t in (1, 4, 8, 16, 32, 64, 128, 256, 512, 1024):
            if dtype != half and t not in (1, 8, 64, 512):
                continue
            linear("linear", t, 1280, 1280, dtype)
            linear("linear", t, 3840, 1280, dtype)
            linear("linear+gelu", t, 5120, 1280, dtype, "none")
            linear("linear+residual", t, 1280, 5120, dtype, residual=True)
            if t <= 256:
                linear("linear", t, 51866, 1280, dtype)
                linear("linear", t, 50257, 768, dtype)
    for t in (1, 8, 64, 128):
        norm_linear("norm+linear", t, 1280, 1280, half)
        norm_linear("norm+linear+append", t, 3840, 1280, half)
        norm_linear("norm+linear+gelu", t, 5120, 1280, half, act=True)
    for dtype in (half, brain):
        attention("attention", 64, 20, 1500, 1500, 64, dtype)
    attention("attention prompt", 8, 20, 224, 224, 64, half, causal=True)
    for dtype in (half, brain, single):
        attention("attention", 8, 20, 1500, 1500, 64, dtype)
        attention("attention causal", 8, 12, 1024, 1024, 64, dtype, causal=True)
        attention("attention", 8, 16, 1024, 1024, 128, dtype)
    for b in (1, 8, 64):
        attention("attention decode", b, 20, 1, 1500, 64, half)
        attention("attention decode", b, 20, 1, 224, 64, half, causal=True)
    for b in (1, 2, 8, 16, 32, 64, 128):
        absorbed_attention(b, 20, 1, half)
    for b in (1, 8, 32):
        absorbed_attention(b, 20, 5, half)
    for b in (1, 128):
        absorbed_attention(b, 6, 1, half)
        absorbed_attention(b, 12, 1, half)
    rows()


if __name__ == "__main__":
    with torch.inference_mode():
        main()
