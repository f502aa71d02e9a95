"""Times PyTorch's Whisper as `bench whisper --device cuda` times ours: random weights, f16, windows
side by side, encoded 16 at a time, prompted with 4 tokens and decoded for 100.

    python3 bench/whisper_torch.py [SIZE...] [--batch N...] [--dtype f16] [--device cuda]

Attention is scaled_dot_product_attention, its kernel PyTorch's choice. A step of one token each is
a CUDA graph over a static cache of 128 places, with the choice of the next tokens inside, fed back
without the host. Run it next to ours on one machine. Prints TSV: what, dtype, windows, ms, rate,
unit. A GPU is what it is for; on a CPU steps are not recorded.
"""
import argparse
import statistics
import time

import torch
import torch.nn.functional as F

SIZES = {  # d_model, heads, encoder layers, decoder layers, mels, vocabulary
    "tiny": (384, 6, 4, 4, 80, 51865),
    "large-v3": (1280, 20, 32, 32, 128, 51866),
    "turbo": (1280, 20, 32, 4, 128, 51866),
}
DTYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}
FRAMES, PLACES, PROMPT, TOKENS, WINDOWS_AT_ONCE = 3000, 128, 4, 100, 16


class Model:
    def __init__(self, size, batch, dtype, device):
        self.c, self.heads, encoder, decoder, self.mels, self.vocab = SIZES[size]
        self.dtype, self.device, self.batch = dtype, device, batch
        c, mels = self.c, self.mels
        self.conv1 = self.random(c, mels, 3), self.vector(c)
        self.conv2 = self.random(c, c, 3), self.vector(c)
        self.audio_positions, self.positions = self.random(FRAMES // 2, c), self.random(448, c)
        self.encoder = [self.layer(False) for _ in range(encoder)]
        self.decoder = [self.layer(True) for _ in range(decoder)]
        self.encoder_norm, self.decoder_norm = self.norm(), self.norm()
        self.embedding = self.random(self.vocab, c)
        self.token = torch.zeros(batch, 1, dtype=torch.long, device=device)
        self.place = torch.zeros(1, dtype=torch.long, device=device)
        self.places = torch.arange(PLACES, device=device)

    def random(self, *shape):
        return (torch.randn(*shape, device=self.device) * 0.02).to(self.dtype)

    def vector(self, n, value=0.0):
        return torch.full((n,), value, device=self.device, dtype=self.dtype)

    def norm(self):
        return self.vector(self.c, 1.0), self.vector(self.c)

    def linear(self, n, k):
        return self.random(n, k), self.vector(n)

    def layer(self, cross):
        c = self.c
        layer = dict(n1=self.norm(), qkv=self.linear(3 * c, c), out=self.linear(c, c),
                     n2=self.norm(), fc1=self.linear(4 * c, c), fc2=self.linear(c, 4 * c))
        if cross:
            layer.update(n3=self.norm(), cross_q=self.linear(c, c), cross_kv=self.linear(2 * c, c),
                         cross_out=self.linear(c, c),
                         kv_cache=torch.zeros(2, self.batch, self.heads, PLACES, 64,
                                              device=self.device, dtype=self.dtype),
                         cross_kv_cache=torch.zeros(2, self.batch, self.heads, FRAMES // 2, 64,
                                                    device=self.device, dtype=self.dtype))
        return layer

    def by_heads(self, x):
        return x.view(x.shape[0], x.shape[1], self.heads, 64).transpose(1, 2)

    def joined(self, x):
        return x.transpose(1, 2).reshape(x.shape[0], x.shape[2], self.c)

    def normalized(self, x, norm):
        return F.layer_norm(x, (self.c,), *norm)

    def mlp(self, x, layer):
        return x + F.linear(F.gelu(F.linear(self.normalized(x, layer["n2"]), *layer["fc1"])),
                            *layer["fc2"])

    def encode(self, mel):
        """mel (windows, mels, 3000) on the host; keys and values of every decoder's layer."""
        for first in range(0, self.batch, WINDOWS_AT_ONCE):
            slots = slice(first, first + WINDOWS_AT_ONCE)
            x = mel[:len(range(*slots.indices(self.batch)))]
            x = x.to(self.device, non_blocking=True).to(self.dtype)
            x = F.gelu(F.conv1d(x, *self.conv1, padding=1))
            x = F.gelu(F.conv1d(x, *self.conv2, stride=2, padding=1)).mT + self.audio_positions
            for layer in self.encoder:
                qkv = F.linear(self.normalized(x, layer["n1"]), *layer["qkv"])
                q, k, v = (self.by_heads(part) for part in qkv.split(self.c, dim=-1))
                attn_out = F.scaled_dot_product_attention(q, k, v)
                x = self.mlp(x + F.linear(self.joined(attn_out), *layer["out"]), layer)
            x = self.normalized(x, self.encoder_norm)
            for layer in self.decoder:
                kv = F.linear(x, *layer["cross_kv"]).split(self.c, dim=-1)
                for cache, part in zip(layer["cross_kv_cache"], kv):
                    cache[slots] = self.by_heads(part)

    def forward(self, tokens, places):
        """The logits of the last of `tokens` (batch, T) at `places` (T)."""
        x = self.embedding[tokens] + self.positions[places]
        mask = self.places[None, :] <= places[:, None]
        for layer in self.decoder:
            qkv = F.linear(self.normalized(x, layer["n1"]), *layer["qkv"])
            q, k, v = (self.by_heads(part) for part in qkv.split(self.c, dim=-1))
            for cache, part in zip(layer["kv_cache"], (k, v)):
                cache.index_copy_(2, places, part)
            attn_out = F.scaled_dot_product_attention(q, *layer["kv_cache"], attn_mask=mask)
            x = x + F.linear(self.joined(attn_out), *layer["out"])
            q = self.by_heads(F.linear(self.normalized(x, layer["n3"]), *layer["cross_q"]))
            attn_out = F.scaled_dot_product_attention(q, *layer["cross_kv_cache"])
            x = x + F.linear(self.joined(attn_out), *layer["cross_out"])
            x = self.mlp(x, layer)
        return F.linear(self.normalized(x[:, -1:], self.decoder_norm), self.embedding)

    def read_prompts(self):
        tokens = torch.arange(PROMPT, device=self.device).expand(self.batch, PROMPT) + 1000
        best = self.forward(tokens, torch.arange(PROMPT, device=self.device)).argmax(-1)
        self.token.copy_(best)
        self.place.fill_(PROMPT)

    def step(self):
        self.token.copy_(self.forward(self.token, self.place).argmax(-1))
        self.place += 1


def milliseconds(work, device, times):
    found = []
    for i in range(times + 1):
        if device == "cuda":
            torch.cuda.synchronize()
        begin = time.perf_counter()
        work()
        if device == "cuda":
            torch.cuda.synchronize()
        found.append((time.perf_counter() - begin) * 1e3)
    return statistics.median(found[1:])  # except the first, which warms up


def recorded(model, device):
    model.read_prompts()
    for _ in range(3):
        model.step()
    if device != "cuda":
        return model.step
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        model.step()
    return graph.replay


@torch.inference_mode()
def measure(size, batch, dtype, device):
    model = Model(size, batch, DTYPES[dtype], device)
    mel = torch.randn(min(batch, WINDOWS_AT_ONCE), model.mels, FRAMES)
    if device == "cuda":
        mel = mel.pin_memory()
    encoder = milliseconds(lambda: model.encode(mel), device, 3)
    step = recorded(model, device)

    def decode(tokens):
        for _ in range(tokens):
            step()

    def from_place():  # the middle of 100 tokens
        model.place.fill_(PROMPT + TOKENS // 2)
        decode(10)

    def whole():
        model.encode(mel)
        model.read_prompts()
        decode(TOKENS)

    middle = milliseconds(from_place, device, 3) / 10
    window = milliseconds(whole, device, 1) / batch

    def show(what, ms, rate="", unit=""):
        print(f"PyTorch whisper {size} {what}\t{dtype}\t{batch}\t{ms:.4f}\t{rate}\t{unit}",
              flush=True)

    show("encoder and cross-attention cache, a window", encoder / batch)
    show("step of one token each", middle)
    show("window with 100 tokens", window, f"{30000 / window:.1f}", "x real time")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("sizes", nargs="*", default=["large-v3"], metavar="SIZE",
                        help=", ".join(SIZES))
    parser.add_argument("--batch", type=int, nargs="+", default=[1, 32, 128])
    parser.add_argument("--dtype", choices=DTYPES, default="f16")
    parser.add_argument("--device", default="cuda")
    arguments = parser.parse_args()
    for size in arguments.sizes:
        for batch in arguments.batch:
            measure(size, batch, arguments.dtype, arguments.device)


if __name__ == "__main__":
    main()
