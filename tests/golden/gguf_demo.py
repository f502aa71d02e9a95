"""Writes the demo GPT as GGUF files of several types, with gguf-py alone, to see that they say the same.

Run from anywhere, with gguf and safetensors (numpy) installed:

    python tests/golden/gguf_demo.py DIR f32 f16 bf16 q8_0 f16:10 ...

DIR/gpt-demo-TYPE.gguf has the keys and the names of llama.cpp's converter, matrices and the token table in TYPE, and
positions, norms and biases in float32. gpt-generate --model DIR/gpt-demo-f32.gguf, and f16, then writes what it does
for the directory itself. TYPE:N writes files of N tensors each; gpt-generate takes the first one.
"""
import json
import pathlib
import sys

import gguf
import numpy
from safetensors.numpy import load_file

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODEL = ROOT / "models" / "gpt-demo"


def write_vocabulary(writer, config):
    tokenizer = json.loads((MODEL / "tokenizer.json").read_text())
    special = {token["content"]: token["id"] for token in tokenizer["added_tokens"] if token["special"]}
    names = {id: name for name, id in {**tokenizer["model"]["vocab"], **special}.items()}
    tokens = [names.get(id, f"[PAD{id}]") for id in range(config["vocab_size"])]
    kind = lambda id: (gguf.TokenType.UNUSED if id not in names else
                       gguf.TokenType.CONTROL if names[id] in special else gguf.TokenType.NORMAL)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    writer.add_token_types([kind(id) for id in range(len(tokens))])
    writer.add_token_merges([merge if isinstance(merge, str) else " ".join(merge) for merge in tokenizer["model"]["merges"]])
    writer.add_bos_token_id(config["bos_token_id"])
    writer.add_eos_token_id(config["eos_token_id"])


def write(path, dtype, config, tensors):
    dtype, _, tensors_per_file = dtype.partition(":")
    writer = gguf.GGUFWriter(path, "gpt2", split_max_tensors=int(tensors_per_file or 0))
    writer.add_block_count(config["n_layer"])
    writer.add_context_length(config["n_positions"])
    writer.add_embedding_length(config["n_embd"])
    writer.add_feed_forward_length(config["n_inner"] or 4 * config["n_embd"])
    writer.add_head_count(config["n_head"])
    writer.add_layer_norm_eps(config["layer_norm_epsilon"])
    write_vocabulary(writer, config)
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.GPT2, config["n_layer"])
    for name, values in tensors.items():
        values = values.astype(numpy.float32)
        if name.endswith((".c_attn.weight", ".c_proj.weight", ".c_fc.weight")):
            values = numpy.ascontiguousarray(values.T)
        stored = names.get_name(name, try_suffixes=(".weight", ".bias"))
        in_f32 = values.ndim == 1 or stored == "position_embd.weight"
        type = gguf.GGMLQuantizationType.F32 if in_f32 else gguf.GGMLQuantizationType[dtype.upper()]
        writer.add_tensor(stored, gguf.quants.quantize(values, type), raw_dtype=type)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main():
    folder, *dtypes = sys.argv[1:]
    config = json.loads((MODEL / "config.json").read_text())
    tensors = load_file(MODEL / "model.safetensors")
    for dtype in dtypes:
        write(pathlib.Path(folder) / f"gpt-demo-{dtype}.gguf", dtype, config, tensors)


if __name__ == "__main__":
    main()
