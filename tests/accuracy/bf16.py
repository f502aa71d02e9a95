"""What a bf16 checkpoint's logits lose, by the type that it is computed in.

    python3 tests/accuracy/bf16.py BIN DIR [cpu|cuda]

Makes three bf16 folders in DIR, unless they are there: the demo GPT; a random Qwen3 of 4 layers;
and that one with a channel of its hidden states beyond f16's largest number. Then prints, for the
device and each --dtype, the root of the sum of squares of the logits' differences from those of
`--device cpu --dtype f32`, relative to that of the logits, and how many of the likeliest tokens are
the same. Logits are those after pieces of the texts of samples/, as `gpt-generate --prefill-only`
writes them. BIN has gpt-generate and, to make the GPT's folder, hark-model. Needs numpy.
"""

import concurrent.futures
import json
import pathlib
import shutil
import struct
import subprocess
import sys

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
PIECES, WORDS = 12, 24
TYPES = {"cpu": ("f32", "f16", "auto", "bf16"), "cuda": ("f32", "f16", "auto", "bf16")}
LARGEST = 6e4  # of a row of a layer's down_proj; f16's largest number is 65,504


def write_bf16(path, tensors):
    header, data = {}, b""
    for name, values in tensors.items():
        bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
        bits = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16).tobytes()
        header[name] = {"dtype": "BF16", "shape": list(values.shape),
                        "data_offsets": [len(data), len(data) + len(bits)]}
        data += bits
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def make_qwen3(folder, large):
    channels, inner, layers, heads, head = 256, 512, 4, 4, 64
    demo = ROOT / "models/gpt-demo"
    folder.mkdir(parents=True)
    for file in ("tokenizer.json", "vocab.json", "merges.txt"):
        shutil.copy(demo / file, folder)
    vocabulary = json.loads((demo / "config.json").read_text())["vocab_size"]
    config = dict(model_type="qwen3", architectures=["Qwen3ForCausalLM"], vocab_size=vocabulary,
                  hidden_size=channels, intermediate_size=inner, num_hidden_layers=layers,
                  num_attention_heads=heads, num_key_value_heads=2, head_dim=head, hidden_act="silu",
                  max_position_embeddings=512, rms_norm_eps=1e-6, rope_theta=10000.0,
                  tie_word_embeddings=False, attention_bias=False, torch_dtype="bfloat16",
                  bos_token_id=vocabulary - 1, eos_token_id=vocabulary - 1)
    (folder / "config.json").write_text(json.dumps(config, indent=2))
    random = np.random.default_rng(7)
    tensors = {}

    def matrix(name, rows, columns):
        tensors[name + ".weight"] = random.normal(0, columns**-0.5, (rows, columns))

    def norm(name, size):
        tensors[name + ".weight"] = 1 + random.normal(0, 0.1, size)

    matrix("model.embed_tokens", vocabulary, channels)
    for i in range(layers):
        at = f"model.layers.{i}."
        norm(at + "input_layernorm", channels)
        norm(at + "post_attention_layernorm", channels)
        norm(at + "self_attn.q_norm", head)
        norm(at + "self_attn.k_norm", head)
        matrix(at + "self_attn.q_proj", heads * head, channels)
        matrix(at + "self_attn.k_proj", 2 * head, channels)
        matrix(at + "self_attn.v_proj", 2 * head, channels)
        matrix(at + "self_attn.o_proj", channels, heads * head)
        matrix(at + "mlp.gate_proj", inner, channels)
        matrix(at + "mlp.up_proj", inner, channels)
        matrix(at + "mlp.down_proj", channels, inner)
    norm("model.norm", channels)
    matrix("lm_head", vocabulary, channels)
    if large:
        row = tensors["model.layers.1.mlp.down_proj.weight"][7]
        row *= LARGEST / np.abs(row).max()
        for name in tensors:  # the norms after it leave the channel out, or all logits would be its
            if name == "model.norm.weight" or name.endswith("layernorm.weight") and name[13] > "1":
                tensors[name][7] = 0
    write_bf16(folder / "model.safetensors", tensors)


def make(binaries, folder):
    models = {"gpt-demo": folder / "demo", "random Qwen3": folder / "qwen3",
              "Qwen3, large states": folder / "qwen3-large"}
    if not models["gpt-demo"].exists():
        subprocess.run([binaries / "hark-model", "convert", ROOT / "models/gpt-demo",
                        models["gpt-demo"], "--to", "safetensors", "--type", "bf16"], check=True)
    for name, large in (("random Qwen3", False), ("Qwen3, large states", True)):
        if not models[name].exists():
            make_qwen3(models[name], large)
    return models


def prompts():
    lines = (ROOT / "samples/transcripts.tsv").read_text().splitlines()[1:]
    words = " ".join(line.split("\t")[-1] for line in lines).split()
    return [" ".join(words[i * WORDS:(i + 1) * WORDS]) for i in range(PIECES)]


# None: the model has no logits in that type.
def logits_of(binaries, model, prompt, device, dtype):
    run = subprocess.run([binaries / "gpt-generate", "--model", model, "--prompt", prompt,
                          "--prefill-only", "--device", device, "--dtype", dtype, "--threads", "1"],
                         capture_output=True, stdin=subprocess.DEVNULL)
    if run.returncode and b"NaN" in run.stderr:
        return None
    if run.returncode:
        raise RuntimeError(run.stderr.decode())
    size = struct.unpack("<Q", run.stdout[:8])[0]
    begin, end = json.loads(run.stdout[8:8 + size])["logits"]["data_offsets"]
    logits = np.frombuffer(run.stdout[8 + size + begin:8 + size + end], "<f4").astype(np.float64)
    return logits if np.isfinite(logits).all() else None


def main():
    binaries, folder = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2])
    device = sys.argv[3] if len(sys.argv) > 3 else "cpu"
    folder.mkdir(parents=True, exist_ok=True)
    print("model\tdevice\tdtype\tlogits\tsame")
    with concurrent.futures.ThreadPoolExecutor(8 if device == "cuda" else 2) as pool:
        for name, model in make(binaries, folder).items():
            def all_of(on, dtype):
                return list(pool.map(lambda prompt: logits_of(binaries, model, prompt, on, dtype),
                                     prompts()))
            exact = all_of("cpu", "f32")
            for dtype in TYPES[device]:
                ours = all_of(device, dtype)
                if any(logits is None for logits in ours):
                    print(name, device, dtype, "not finite", "", sep="\t", flush=True)
                    continue
                error = sum(np.sum((a - b)**2) for a, b in zip(ours, exact))
                size = sum(np.sum(b**2) for b in exact)
                same = sum(a.argmax() == b.argmax() for a, b in zip(ours, exact))
                print(name, device, dtype, f"{(error / size)**0.5:.1e}", f"{same} of {PIECES}",
                      sep="\t", flush=True)


if __name__ == "__main__":
    main()
