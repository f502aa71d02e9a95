"""Times PyTorch's causal attention for training, forward and backward, at the sizes of cuda_ops.cc.

    python3 bench/kernels/self_attention_torch.py

Queries, keys and values are views of one (B, T, 3, H, D) tensor, as a fused product leaves them.
Prints the TSV of cuda_ops_torch.py: what, dtype, shape, microseconds, TFLOP/s (of the pairs that
are seen). The backward pass is the median time of an iteration with it less that of the forward
pass, both as replays of a CUDA graph.
"""
import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from cuda_ops_torch import microseconds


def time(name, backend, b, h, t, d):
    qkv = torch.randn(b, t, 3, h, d, device="cuda", dtype=torch.bfloat16)
    q, k, v = (x.detach().requires_grad_() for x in qkv.permute(2, 0, 3, 1, 4))
    dout = torch.randn(b, t, h, d, device="cuda", dtype=torch.bfloat16).transpose(1, 2)

    def forward(_):
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)

    def both(_):
        return torch.autograd.grad(forward(0), (q, k, v), dout)

    with sdpa_kernel(backend):
        first = microseconds(forward)
        second = microseconds(both) - first
    products = b * h * t * t * d
    for what, us, flops in (("", first, 2 * products), ("_backward", second, 5 * products)):
        print(f"self_attention{what} {name}\tbf16\tB{b} H{h} T{t} D{d}\t{us:.2f}"
              f"\t{flops / us * 1e-6:.1f}", flush=True)


if __name__ == "__main__":
    for batch in (64, 4):
        time("flash", SDPBackend.FLASH_ATTENTION, batch, 12, 1024, 64)
        time("cudnn", SDPBackend.CUDNN_ATTENTION, batch, 12, 1024, 64)
    for heads, channels in ((16, 64), (16, 96), (16, 128), (32, 80), (32, 128)):
        time("flash", SDPBackend.FLASH_ATTENTION, 8, heads, 2048, channels)
        time("cudnn", SDPBackend.CUDNN_ATTENTION, 8, heads, 2048, channels)
