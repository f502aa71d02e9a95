"""How far PyTorch's operations are from float64 in float32, float16 and bfloat16, so that ours may
be asked for at most twice as much (tests/kernels/op_errors_test.cc).

    python3 tests/golden/op_errors.py > tests/golden/op_errors.json                    # of a CPU
    python3 tests/golden/op_errors.py --device cuda > tests/golden/op_errors_cuda.json # of a GPU

Inputs are random_values() of tests/support/ops.h, rounded to the type that computes, biases and
norms too; only their seeds are written. Of a result 256 values are: those at i * 2654435761 modulo
its size, as float64 has them, with the largest and the root of the mean squared distance of
PyTorch's. PyTorch's side of an operation is what a model written with it would call.
"""
import argparse
import json
import math

import numpy as np
import torch
import torch.nn.functional as F

from formula_weights import mixed

SAMPLES = 256
DTYPES = dict(f32=torch.float32, f16=torch.float16, bf16=torch.bfloat16)


def random_values(count, seed, deviation):
    """random_values() of tests/support/ops.h: the sum of SplitMix64's four 16-bit parts."""
    with np.errstate(over="ignore"):
        steps = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        z = mixed(np.uint64(seed) + steps)
    total = np.full(count, -2.0)
    for i in range(4):
        total += ((z >> np.uint64(16 * i)) & np.uint64(0xFFFF)).astype(np.float64) / 65536
    return torch.from_numpy((total * 1.7320508 * deviation).astype(np.float32))


def of(seed, *shape, deviation=1.0):
    return dict(seed=seed, shape=list(shape), deviation=deviation)


def linear(t, k, n, activation="none", residual=False):
    inputs = dict(x=of(1, t, k), w=of(2, n, k, deviation=1 / math.sqrt(k)), bias=of(3, n))
    if residual:
        inputs["residual"] = of(4, t, n)

    def call(x, w, bias, residual=None):
        y = F.linear(x, w, bias)
        if activation != "none":
            y = F.gelu(y, approximate="tanh" if activation == "gelu_tanh" else "none")
        return y if residual is None else y + residual

    return dict(op="linear", activation=activation, inputs=inputs), call


def conv1d(b, t, c, n, stride):
    inputs = dict(x=of(1, b, t, c), w=of(2, n, c, 3, deviation=1 / math.sqrt(3 * c)), bias=of(3, n))

    def call(x, w, bias):
        return F.gelu(F.conv1d(x.mT, w, bias, stride=stride, padding=1)).mT

    return dict(op="conv1d", stride=stride, inputs=inputs), call


def layer_norm(t, c, deviation):
    inputs = dict(x=of(1, t, c, deviation=deviation), w=of(2, c), b=of(3, c))
    return (dict(op="layer_norm", inputs=inputs),
            lambda x, w, b: F.layer_norm(x, (x.shape[-1],), w, b, 1e-5))


def rms_norm(t, c, deviation):
    inputs = dict(x=of(1, t, c, deviation=deviation), w=of(2, c))
    return (dict(op="rms_norm", inputs=inputs),
            lambda x, w: F.rms_norm(x, (x.shape[-1],), w, 1e-5))


def gated_activation(t, n):
    inputs = dict(gate=of(1, t, n), up=of(2, t, n))
    return dict(op="gated_activation", inputs=inputs), lambda gate, up: F.silu(gate) * up


def embedding(t, v, c):
    inputs = dict(table=of(1, v, c), positions=of(2, t, c))
    tokens = [i * 7919 % v for i in range(t)]
    return (dict(op="embedding", tokens=tokens, inputs=inputs),
            lambda table, positions: F.embedding(torch.tensor(tokens, device=table.device), table)
            + positions)


def add_positions(b, t, c):
    inputs = dict(x=of(1, b, t, c), positions=of(2, t, c))
    return dict(op="add_positions", inputs=inputs), lambda x, positions: x + positions


def attention(b, h, queries, length, d, causal):
    inputs = dict(q=of(1, b, queries, h, d), keys=of(2, b, h, length, d),
                  values=of(3, b, h, length, d))

    def call(q, keys, values):
        mask = None
        if causal and queries > 1:  # the last query sees all keys
            mask = torch.ones(queries, length, dtype=torch.bool, device=q.device)
            mask = mask.tril(length - queries)
        out = F.scaled_dot_product_attention(q.transpose(1, 2), keys, values, attn_mask=mask)
        return out.transpose(1, 2).reshape(b * queries, h * d)

    return dict(op="attention", causal=causal, inputs=inputs), call


def attention_scores(b, h, queries, length, d):
    inputs = dict(q=of(1, b, queries, h, d), keys=of(2, b, h, length, d))

    def call(q, keys):
        scores = q.transpose(1, 2) @ keys.mT / math.sqrt(d)  # (B, H, T, S)
        wide = scores if scores.dtype == torch.float64 else scores.float()
        return wide.transpose(0, 1).reshape(h, b * queries, length)

    return dict(op="attention_scores", inputs=inputs), call


def absorbed_attention(b, h, queries, frames):
    """PyTorch's side keeps keys and values, as a model written with it does."""
    c = 64 * h
    deviation = 1 / math.sqrt(c)
    inputs = dict(q=of(1, b, queries, c), encoder_out=of(2, b, frames, c),
                  kv=of(3, 2 * c, c, deviation=deviation), bias=of(4, c))

    def call(q, encoder_out, kv, bias):
        def by_heads(x):
            return x.view(b, -1, h, 64).transpose(1, 2)

        keys, values = F.linear(encoder_out, kv[:c]), F.linear(encoder_out, kv[c:], bias)
        out = F.scaled_dot_product_attention(by_heads(q), by_heads(keys), by_heads(values))
        return out.transpose(1, 2).reshape(b * queries, c)

    return dict(op="absorbed_attention", inputs=inputs), call


CASES = [
    # A step's rows, a prompt's and an encoder's, with what is fused after them.
    linear(1, 1280, 1280),
    linear(8, 384, 1536, activation="gelu"),
    linear(64, 768, 3072, activation="gelu_tanh"),
    linear(13, 1536, 384, residual=True),
    linear(100, 1280, 384, residual=True),
    linear(1500, 384, 1536, activation="gelu"),
    linear(1500, 1536, 384, residual=True),
    conv1d(2, 100, 80, 384, 1),
    conv1d(1, 300, 384, 384, 2),
    layer_norm(5, 1280, 1.0),
    layer_norm(600, 768, 30.0),
    rms_norm(5, 2048, 1.0),
    rms_norm(64, 1280, 30.0),
    gated_activation(9, 4096),
    embedding(9, 61, 384),
    add_positions(2, 30, 384),
    # A step over itself and over what was encoder_out, a prompt, encoders with heads of 64 and of 128.
    attention(3, 6, 1, 224, 64, True),
    attention(2, 6, 1, 1500, 64, False),
    attention(2, 6, 100, 160, 64, True),
    attention(1, 3, 1500, 1500, 64, False),
    attention(1, 2, 700, 700, 128, False),
    attention_scores(1, 2, 30, 1500, 64),
    absorbed_attention(2, 6, 1, 1500),
    absorbed_attention(1, 6, 5, 1500),
]


def distances(found, exact):
    """The largest and the mean squared distance's root, and the values themselves."""
    at = np.arange(SAMPLES, dtype=np.uint64) * np.uint64(2654435761) % np.uint64(exact.numel())
    at = torch.from_numpy(at.astype(np.int64)).to(exact.device)
    exact = exact.flatten()[at]
    apart = found.double().flatten()[at] - exact
    return dict(largest=float(f"{apart.abs().max().item():.4g}"),
                rms=float(f"{apart.square().mean().sqrt().item():.4g}"),
                values=[float(f"{value:.10g}") for value in exact.tolist()])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cpu")
    device = parser.parse_args().device
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    cases = []
    for case, call in CASES:
        case["result"] = {}
        for name, dtype in DTYPES.items():
            inputs = {key: random_values(math.prod(of["shape"]), of["seed"], of["deviation"])
                      .view(of["shape"]).to(device, dtype) for key, of in case["inputs"].items()}
            exact = call(**{key: value.double() for key, value in inputs.items()})
            case["result"][name] = distances(call(**inputs), exact)
        cases.append(case)
    print(json.dumps(cases, separators=(",", ":")))


if __name__ == "__main__":
    with torch.inference_mode():
        main()
