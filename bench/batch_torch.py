"""Measures a step of many texts in PyTorch, of `bench gpt-batch`'s Llama shapes: random weights in bf16.

    python3 bench/batch_torch.py [--shape llama-3.1-8b] [--batch 64,256] [--cache 256]

A step is compiled, then a CUDA graph. Attention has no mask and reads the whole static cache, for
which PyTorch has its fastest kernel. Run it next to `bench gpt-batch --device cuda`, on one machine.
Prints TSV: what, dtype, ms per step, tokens/s.
"""
import argparse
import statistics
import time

import torch
import torch.nn.functional as F

# layers, channels, heads, key heads, inner channels, vocabulary
SHAPES = {"llama-3.1-8b": (32, 4096, 32, 8, 14336, 128256),
          "llama-3.2-1b": (16, 2048, 32, 8, 8192, 128256),
          "qwen2.5-0.5b": (24, 896, 14, 2, 4864, 151936)}


def matrix(n, k):
    return torch.randn(n, k, device="cuda", dtype=torch.bfloat16) * 0.02


class Model:
    def __init__(self, shape, batch, cache):
        self.layers, self.c, self.h, self.kv, inner, self.v = SHAPES[shape]
        self.d = self.c // self.h
        self.table = matrix(self.v, self.c)
        self.head = matrix(self.v, self.c)
        self.blocks = [(matrix((self.h + 2 * self.kv) * self.d, self.c), matrix(self.c, self.c),
                        matrix(2 * inner, self.c), matrix(self.c, inner))
                       for _ in range(self.layers)]
        self.norm = torch.ones(self.c, device="cuda", dtype=torch.bfloat16)
        self.caches = [[torch.randn(batch, self.kv, cache, self.d, device="cuda",
                                    dtype=torch.bfloat16) for _ in range(2)]
                       for _ in range(self.layers)]
        self.frequencies = 500000.0 ** (-torch.arange(0, self.d, 2, device="cuda") / self.d)

    def rms(self, x):
        return F.rms_norm(x, (self.c,), self.norm, 1e-5)

    def step(self, token, place):
        b, kv, d = token.shape[0], self.kv, self.d
        angle = place.float()[:, None] * self.frequencies
        cos = torch.cat([angle.cos()] * 2, 1)[:, None].to(torch.bfloat16)
        sin = torch.cat([angle.sin()] * 2, 1)[:, None].to(torch.bfloat16)

        def turned(x):
            a, c = x.chunk(2, -1)
            return x * cos + torch.cat([-c, a], -1) * sin

        rows = torch.arange(b, device="cuda")
        x = self.table[token]
        for i, (qkv, out, gate_up, down) in enumerate(self.blocks):
            q, k, v = F.linear(self.rms(x), qkv).view(b, -1, d).split([self.h, kv, kv], 1)
            keys, values = self.caches[i]
            keys[rows, :, place] = turned(k)
            values[rows, :, place] = v
            mixed = F.scaled_dot_product_attention(turned(q)[:, :, None], keys, values,
                                                   enable_gqa=True)
            x = x + F.linear(mixed.reshape(b, -1), out)
            gate, up = F.linear(self.rms(x), gate_up).chunk(2, -1)
            x = x + F.linear(F.silu(gate) * up, down)
        return F.linear(self.rms(x), self.head).argmax(-1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--shape", default="llama-3.1-8b", choices=SHAPES)
    parser.add_argument("--batch", default="64,256")
    parser.add_argument("--cache", type=int, default=256)
    args = parser.parse_args()
    torch.manual_seed(1)
    for batch in (int(b) for b in args.batch.split(",")):
        model = Model(args.shape, batch, args.cache)
        token = torch.randint(model.v, (batch,), device="cuda")
        place = torch.full((batch,), args.cache * 3 // 4, device="cuda")
        step = torch.compile(model.step)
        with torch.no_grad():
            side = torch.cuda.Stream()
            with torch.cuda.stream(side):
                for _ in range(3):
                    step(token, place)
            torch.cuda.synchronize()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                token.copy_(step(token, place))
        times = []
        for _ in range(5):
            torch.cuda.synchronize()
            begin = time.perf_counter()
            for _ in range(20):
                graph.replay()
            torch.cuda.synchronize()
            times.append((time.perf_counter() - begin) / 20)
        ms = statistics.median(times) * 1000
        print(f"{args.shape}, PyTorch, {batch} at once, cache of {args.cache}\tbf16\t{ms:.3f}"
              f"\t{batch / ms * 1000:.0f}", flush=True)
        del model, graph, step
        torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
