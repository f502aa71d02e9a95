"""Times PyTorch's training step of a GPT-2 of any shape: random tokens, AdamW, clipping to 1.

    python3 bench/train_torch.py --layers 4 --heads 4 --width 128 --length 64 --batch 12 --vocab 257
    python3 bench/train_torch.py --size 124M --length 64 --batch 4 --threads 2 [--compile]
    python3 bench/train_torch.py --size 124M --length 1024 --batch 64 --device cuda --compile

On the CPU in float32, on a GPU in bf16 by autocast with float32 parameters. Run it next to gpt-train
of the same shape on one machine. Prints TSV: what, median ms per step, tokens/s, peak MiB of the GPU.
"""
import argparse
import statistics
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

SIZES = {"124M": (12, 768, 12), "355M": (24, 1024, 16), "774M": (36, 1280, 20),
         "1558M": (48, 1600, 25)}


class Block(nn.Module):
    def __init__(self, c, heads):
        super().__init__()
        self.heads = heads
        self.ln_1, self.ln_2 = nn.LayerNorm(c), nn.LayerNorm(c)
        self.attn, self.proj = nn.Linear(c, 3 * c), nn.Linear(c, c)
        self.fc, self.out = nn.Linear(c, 4 * c), nn.Linear(4 * c, c)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (part.view(b, t, self.heads, c // self.heads).transpose(1, 2)
                   for part in self.attn(self.ln_1(x)).split(c, dim=2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(b, t, c))
        return x + self.out(F.gelu(self.fc(self.ln_2(x)), approximate="tanh"))


class Gpt(nn.Module):
    def __init__(self, layers, c, heads, vocab, positions):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocab, c), nn.Embedding(positions, c)
        self.h = nn.ModuleList(Block(c, heads) for _ in range(layers))
        self.ln_f = nn.LayerNorm(c)
        for p in self.parameters():
            nn.init.normal_(p, std=0.02)

    def forward(self, tokens, targets):
        x = self.wte(tokens) + self.wpe(torch.arange(tokens.shape[1], device=tokens.device))
        for block in self.h:
            x = block(x)
        logits = F.linear(self.ln_f(x), self.wte.weight)
        return F.cross_entropy(logits.view(-1, logits.shape[-1]), targets.reshape(-1))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--size", choices=SIZES)
    for name, default in [("layers", 4), ("heads", 4), ("width", 128), ("length", 64), ("batch", 12),
                          ("vocab", 50257), ("threads", 2), ("steps", 20)]:
        parser.add_argument("--" + name, type=int, default=default)
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    args = parser.parse_args()
    torch.manual_seed(1)
    torch.set_num_threads(args.threads)
    layers, width, heads = SIZES.get(args.size, (args.layers, args.width, args.heads))
    gpu = args.device == "cuda"
    model = Gpt(layers, width, heads, args.vocab, args.length).to(args.device)
    run = torch.compile(model) if args.compile else model
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, betas=(0.9, 0.95), fused=True)
    tokens = torch.randint(args.vocab, (args.batch, args.length + 1), device=args.device)
    times = []
    for _ in range(args.steps + 3):
        begin = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(args.device, torch.bfloat16, enabled=gpu):
            loss = run(tokens[:, :-1], tokens[:, 1:])
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        loss.item()  # what a training run prints
        times.append(1e3 * (time.perf_counter() - begin))
    ms = statistics.median(times[3:])
    print(f"PyTorch train {args.size or f'{layers} x {width}'}{' compiled' if args.compile else ''}\t"
          f"{ms:.1f}\t{1e3 * args.batch * args.length / ms:.0f}\t"
          f"{torch.cuda.max_memory_allocated() >> 20 if gpu else ''}")


if __name__ == "__main__":
    main()
