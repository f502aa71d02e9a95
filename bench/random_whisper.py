"""Writes a Whisper model of an official size with random weights, whose every window has 100 tokens
of text: the position after them points at <|endoftext|>. Its tokenizer is the demo model's; ids that
it does not know are never the likeliest.

    python3 bench/random_whisper.py large-v3 DIR       (torch, safetensors)
"""
import json
import shutil
import sys
from pathlib import Path

import torch
from safetensors.torch import save_file

from whisper_torch import SIZES

PROMPT, TOKENS = 4, 100
DEMO = Path(__file__).resolve().parent.parent / "models" / "whisper-demo"


def main():
    size, out = sys.argv[1], Path(sys.argv[2])
    c, heads, encoder_layers, decoder_layers, mels, n_vocab = SIZES[size]
    out.mkdir(parents=True, exist_ok=True)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    generator = torch.Generator(device).manual_seed(1)
    tensors = {}

    def normal(name, *shape, deviation=0.02):
        values = torch.randn(*shape, generator=generator, device=device) * deviation
        tensors["model." + name] = values.half().cpu()

    def norm(name):
        tensors[f"model.{name}.weight"] = torch.ones(c).half()
        tensors[f"model.{name}.bias"] = torch.zeros(c).half()

    def linear(name, rows, columns, bias=True):
        normal(name + ".weight", rows, columns)
        if bias:
            normal(name + ".bias", rows)

    def block(name, cross):
        for attention in ["self_attn"] + (["encoder_attn"] if cross else []):
            for part in "qkv":
                linear(f"{name}.{attention}.{part}_proj", c, c, part != "k")
            linear(f"{name}.{attention}.out_proj", c, c)
            norm(f"{name}.{attention}_layer_norm")
        linear(f"{name}.fc1", 4 * c, c)
        linear(f"{name}.fc2", c, 4 * c)
        norm(f"{name}.final_layer_norm")

    normal("encoder.conv1.weight", c, mels, 3)
    normal("encoder.conv1.bias", c)
    normal("encoder.conv2.weight", c, c, 3)
    normal("encoder.conv2.bias", c)
    normal("encoder.embed_positions.weight", 1500, c, deviation=0.1)
    for i in range(encoder_layers):
        block(f"encoder.layers.{i}", False)
    norm("encoder.layer_norm")
    for i in range(decoder_layers):
        block(f"decoder.layers.{i}", True)
    norm("decoder.layer_norm")

    text = len(json.loads((DEMO / "vocab.json").read_text()))
    eot = json.loads((DEMO / "generation_config.json").read_text())["eos_token_id"]
    eot = eot[0] if isinstance(eot, list) else eot
    embedding = torch.randn(n_vocab, c, generator=generator, device=device) * 0.02
    end = embedding[eot].clone()
    embedding[min(text, eot):] = 0
    embedding[eot] = end
    positions = torch.randn(448, c, generator=generator, device=device) * 0.02
    positions[PROMPT + TOKENS - 1:] += 5000 * end
    tensors["model.decoder.embed_tokens.weight"] = embedding.half().cpu()
    tensors["model.decoder.embed_positions.weight"] = positions.half().cpu()
    save_file(tensors, out / "model.safetensors")

    config = json.loads((DEMO / "config.json").read_text())
    config.update(num_mel_bins=mels, d_model=c, encoder_attention_heads=heads,
                  decoder_attention_heads=heads, encoder_layers=encoder_layers,
                  decoder_layers=decoder_layers, encoder_ffn_dim=4 * c, decoder_ffn_dim=4 * c,
                  vocab_size=n_vocab, max_target_positions=448)
    (out / "config.json").write_text(json.dumps(config, indent=1))
    generation = json.loads((DEMO / "generation_config.json").read_text())
    generation["alignment_heads"] = [[decoder_layers - 1, 0]]
    (out / "generation_config.json").write_text(json.dumps(generation, indent=1))
    for name in ["vocab.json", "merges.txt", "tokenizer.json", "preprocessor_config.json"]:
        shutil.copy(DEMO / name, out / name)


main()
