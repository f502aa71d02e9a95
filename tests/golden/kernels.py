# What PyTorch gives for the kernels' definitions, on inputs small enough to be read.
# Run from the repository's root, with torch installed:
#     python3 tests/golden/kernels.py > tests/golden/kernels.json
import json

import torch
import torch.nn.functional as F

torch.manual_seed(7)


def flat(tensor):
    return [float(f"{value:.9g}") for value in tensor.flatten().tolist()]


def layer_norm():
    x = torch.randn(4, 37)
    x[1] = 5000 + 0.05 * torch.randn(37)  # a large mean and a tiny variance
    x[2] = 3.25  # no variance
    x[3] *= 1e-3
    w, b = torch.randn(37), torch.randn(37)
    y = F.layer_norm(x.double(), (37,), w.double(), b.double(), 1e-5)
    return dict(rows=4, columns=37, x=flat(x), w=flat(w), b=flat(b), y=flat(y))


def gelu():
    x = torch.cat([torch.linspace(-12, 12, 193), torch.tensor([-60.0, 60.0, 0.0, -1e-3, 1e-3])])
    exact = F.gelu(x.double())
    return dict(x=flat(x), gelu=flat(exact), gelu_tanh=flat(F.gelu(x.double(), approximate="tanh")))


def conv1d(stride):
    x, w, b = torch.randn(2, 5, 9), torch.randn(6, 5, 3), torch.randn(6)
    y = F.conv1d(x.double(), w.double(), b.double(), stride=stride, padding=1)
    # x and y with channels last, as hark keeps them; w as files store it, (N, C, taps).
    return dict(stride=stride, shape=[2, 9, 5], outputs=6, x=flat(x.transpose(1, 2)), w=flat(w),
                b=flat(b), y=flat(y.transpose(1, 2)), frames=y.shape[2])


def attention(causal):
    heads, kv_heads, size, capacity = 4, 2, 6, 11
    lengths, queries = [3, 11, 5, 9], [3, 1, 2, 9]
    if not causal:
        queries = [2, 1, 10, 1]
    q = torch.randn(sum(queries), heads, size)
    keys, values = torch.randn(2, 4, kv_heads, capacity, size).double()
    out, first = [], 0
    for b, (length, count) in enumerate(zip(lengths, queries)):
        rows = q[first:first + count].transpose(0, 1).double()  # (H, n, D)
        k = keys[b, :, :length].repeat_interleave(heads // kv_heads, 0)
        v = values[b, :, :length].repeat_interleave(heads // kv_heads, 0)
        mask = torch.ones(count, length, dtype=torch.bool)
        if causal:
            mask = mask.tril(length - count)
        result = F.scaled_dot_product_attention(rows[None], k[None], v[None], attn_mask=mask)
        out.append(result[0].transpose(0, 1).reshape(count, heads * size))
        first += count
    return dict(causal=causal, heads=heads, kv_heads=kv_heads, size=size, capacity=capacity,
                lengths=lengths, queries=queries, q=flat(q), keys=flat(keys), values=flat(values),
                out=flat(torch.cat(out)))


print(json.dumps(dict(layer_norm=layer_norm(), gelu=gelu(), conv1d=[conv1d(1), conv1d(2)],
                      attention=[attention(False), attention(True)]), separators=(",", ":")))
