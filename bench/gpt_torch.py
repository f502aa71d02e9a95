"""Times PyTorch's GPT-2 at the sizes of `bench gpt`: random weights, f16, one text at batch 1.

    python3 bench/gpt_torch.py [SIZE...] [--tokens N]

A step of one token is a CUDA graph over a static cache of as many places as the text takes, with
the choice of the next token inside, fed back without the host. Run it next to `bench gpt --device
cuda` on one machine. Prints TSV: what, dtype, ms per step, tokens/s.
"""
import argparse
import statistics
import time

import torch
import torch.nn.functional as F

SIZES = {"124M": (12, 768, 12), "355M": (24, 1024, 16), "774M": (36, 1280, 20),
         "1558M": (48, 1600, 25)}
VOCAB, PROMPT = 50257, 16


class Model:
    def __init__(self, size, places, dtype):
        self.layers, self.c, self.heads = SIZES[size]
        self.d = self.c // self.heads
        c = self.c

        def matrix(n, k):
            return (torch.randn(n, k, device="cuda") * 0.02).to(dtype)

        def vector(n, value=0.0):
            return torch.full((n,), value, device="cuda", dtype=dtype)

        self.wte, self.wpe = matrix(VOCAB, c), matrix(places, c)
        self.blocks = [dict(n1=(vector(c, 1.0), vector(c)), n2=(vector(c, 1.0), vector(c)),
                            qkv=(matrix(3 * c, c), vector(3 * c)), out=(matrix(c, c), vector(c)),
                            fc1=(matrix(4 * c, c), vector(4 * c)),
                            fc2=(matrix(c, 4 * c), vector(c)),
                            keys=torch.zeros(1, self.heads, places, self.d, device="cuda",
                                             dtype=dtype),
                            values=torch.zeros(1, self.heads, places, self.d, device="cuda",
                                               dtype=dtype))
                       for _ in range(self.layers)]
        self.norm = (vector(c, 1.0), vector(c))
        self.token = torch.zeros(1, dtype=torch.long, device="cuda")
        self.place = torch.zeros(1, dtype=torch.long, device="cuda")
        self.places = torch.arange(places, device="cuda")

    def logits(self):
        c = self.c
        x = self.wte[self.token] + self.wpe[self.place]
        mask = (self.places <= self.place)[None, None, None, :]
        for b in self.blocks:
            qkv = F.linear(F.layer_norm(x, (c,), *b["n1"]), *b["qkv"])
            q, k, v = (part.view(1, self.heads, 1, self.d) for part in qkv.split(c, dim=1))
            b["keys"].index_copy_(2, self.place, k)
            b["values"].index_copy_(2, self.place, v)
            mixed = F.scaled_dot_product_attention(q, b["keys"], b["values"], attn_mask=mask)
            x = x + F.linear(mixed.reshape(1, c), *b["out"])
            hidden = F.gelu(F.linear(F.layer_norm(x, (c,), *b["n2"]), *b["fc1"]),
                            approximate="tanh")
            x = x + F.linear(hidden, *b["fc2"])
        return F.linear(F.layer_norm(x, (c,), *self.norm), self.wte)[0].float()

    def step(self, draws):
        logits = self.logits()
        if draws:
            best, ids = torch.topk(logits / 0.8, 40)
            p = torch.softmax(best, 0)
            p = torch.where(torch.cumsum(p, 0) - p < 0.95, p, 0.0)
            # The largest of p / exponentially distributed numbers is drawn with probability p.
            token = ids[(p / torch.empty_like(p).exponential_()).argmax(0, keepdim=True)]
        else:
            token = logits.argmax(0, keepdim=True)
        self.token.copy_(token)
        self.place += 1


@torch.no_grad()
def measure(size, tokens, dtype):
    model = Model(size, PROMPT + tokens + 1, dtype)
    for draws in (False, True):
        model.place.fill_(PROMPT)
        for _ in range(3):
            model.step(draws)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            model.step(draws)
        times = []
        for _ in range(4):
            model.place.fill_(PROMPT)
            torch.cuda.synchronize()
            begin = time.perf_counter()
            for _ in range(tokens):
                graph.replay()
            torch.cuda.synchronize()
            times.append((time.perf_counter() - begin) / tokens * 1e3)
        ms = statistics.median(times[1:])
        name = "default draws" if draws else "greedy"
        print(f"PyTorch gpt {size} step, {name}\tf16\t{ms:.4f}\t{1000 / ms:.0f}", flush=True)


parser = argparse.ArgumentParser()
parser.add_argument("sizes", nargs="*", default=list(SIZES))
parser.add_argument("--tokens", type=int, default=240)
arguments = parser.parse_args()
for size in arguments.sizes:
    measure(size, arguments.tokens, torch.float16)
