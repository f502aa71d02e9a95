"""Writes tiny random models of the families as GGUF files with the gguf package, and compares what
gpt-generate makes of them with transformers on the same weights.

    python3 tests/golden/gguf_twins.py BIN [CASE...]

The rules of llama.cpp's converter are written here once more: names by the package's own map, rows
of queries and keys in turn where the architecture rotates neighbours, 1 + w for Gemma's norms, a
layer's experts in one tensor. BIN is the folder of gpt-generate. Prints as folder_peers.py does;
exit status 1 where ids or tokens differ. Needs torch 2, transformers 4.57 and gguf 0.19."""
import json
import pathlib
import sys
import tempfile

import folder_peers  # first: its sys.path is the one to import transformers with
import gguf
import numpy as np
import torch
import transformers

HERE = pathlib.Path(__file__).resolve().parent
# Case of families.json, changes, architecture, tokenizer with a twin in GGUF.
TWINS = [
    ("llama", {}, "llama", "llama3"),
    ("llama, biases, odd heads, linear", {}, "llama", "llama2"),
    ("qwen2, tied", {}, "qwen2", "qwen2"),
    ("qwen3", {}, "qwen3", "qwen2"),
    ("gemma2", dict(query_pre_attn_scalar=32, layer_types=None), "gemma2", "gemma"),
    ("gemma3", dict(query_pre_attn_scalar=32, layer_types=None, sliding_window_pattern=6,
                    num_hidden_layers=7), "gemma3", "gemma"),
    ("phi3, window", {}, "phi3", "llama2"),
    ("phi3, longrope", {}, "phi3", "llama2"),
    ("smollm3", dict(no_rope_layers=None, no_rope_layer_interval=4, num_hidden_layers=5,
                     layer_types=None, use_sliding_window=False), "smollm3", "smollm3"),
    ("olmo2", {}, "olmo2", "olmo2"),
    ("granite", {}, "granite", "granite"),
    ("mixtral", folder_peers.NO_WINDOW, "llama", "llama2"),
    ("qwen3_moe", {}, "qwen3moe", "qwen2"),
    ("olmo3, yarn, other layers", {}, "olmo2", "olmo2"),
    ("gpt_oss", {}, "gpt-oss", "gpt_oss"),
    ("gpt_oss, mxfp4", {}, "gpt-oss", "gpt_oss"),
]
INTERLEAVED = ("llama", "smollm3", "granite")


def in_turn(rows, heads):
    """Row 2 j of a head is row j, row 2 j + 1 is row j + D / 2."""
    return rows.reshape(heads, 2, rows.shape[0] // heads // 2, *rows.shape[1:]).swapaxes(1, 2).reshape(rows.shape)


def add_settings(out, c, arch, model):
    rope = getattr(c, "rope_scaling", None) or {}
    out.add_context_length(c.max_position_embeddings)
    out.add_embedding_length(c.hidden_size)
    out.add_block_count(c.num_hidden_layers)
    out.add_feed_forward_length(c.intermediate_size)
    out.add_head_count(c.num_attention_heads)
    out.add_head_count_kv(c.num_key_value_heads)
    dim = getattr(c, "head_dim", None) or c.hidden_size // c.num_attention_heads
    out.add_key_length(dim)
    out.add_value_length(dim)
    out.add_rope_dimension_count(int(dim * getattr(c, "partial_rotary_factor", 1)))
    out.add_rope_freq_base(c.rope_theta)
    out.add_layer_norm_rms_eps(c.rms_norm_eps)
    if rope.get("rope_type") == "linear":
        out.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
        out.add_rope_scaling_factor(rope["factor"])
    if rope.get("rope_type") == "yarn":
        out.add_rope_scaling_type(gguf.RopeScalingType.YARN)
        out.add_rope_scaling_factor(rope["factor"])
        out.add_rope_scaling_orig_ctx_len(rope["original_max_position_embeddings"])
    if rope.get("rope_type") == "llama3":
        plain = 1 / c.rope_theta ** (np.arange(0, dim, 2) / dim)
        out.add_tensor("rope_freqs.weight", (plain / model.model.rotary_emb.inv_freq.numpy()).astype(np.float32))
    if "long_factor" in rope:
        out.add_rope_scaling_orig_ctx_len(c.original_max_position_embeddings)
        out.add_rope_scaling_attn_factors(float(model.model.rotary_emb.attention_scaling))
        for name in ("long", "short"):
            out.add_tensor(f"rope_factors_{name}.weight", np.array(rope[f"{name}_factor"], np.float32))
    if arch in ("gemma2", "gemma3", "phi3", "gpt-oss", "olmo2") and getattr(c, "sliding_window", None):
        out.add_sliding_window(c.sliding_window)
    if c.model_type == "olmo3":
        out.add_sliding_window_pattern([kind == "sliding_attention" for kind in c.layer_types])
    if arch == "gemma2":
        out.add_attn_logit_softcapping(c.attn_logit_softcapping)
        out.add_final_logit_softcapping(c.final_logit_softcapping)
    if arch == "gemma3":
        out.add_rope_freq_base_swa(c.rope_local_base_freq)
    if arch == "granite":
        out.add_embedding_scale(c.embedding_multiplier)
        out.add_attention_scale(c.attention_multiplier)
        out.add_residual_scale(c.residual_multiplier)
        out.add_logit_scale(c.logits_scaling)
    experts = getattr(c, "num_local_experts", None) or getattr(c, "num_experts", None)
    if experts:
        out.add_expert_count(experts)
        out.add_expert_used_count(c.num_experts_per_tok)
    if arch in ("qwen3moe", "gpt-oss"):
        out.add_expert_feed_forward_length(getattr(c, "moe_intermediate_size", c.intermediate_size))


def packed(blocks, scales):
    """Blocks of a folder, whose bytes have neighbours, as GGUF has them: values j and j + 16 in byte j."""
    values = np.stack([blocks & 15, blocks >> 4], -1).reshape(*blocks.shape[:-1], 32)
    whole = np.concatenate([scales[..., None], values[..., :16] | values[..., 16:] << 4], -1)
    return whole.reshape(*blocks.shape[:2], -1)


def add_gpt_oss_experts(out, names, tensors):
    """The folder's stacks, of which gate and up are columns, or rows of blocks, in turn."""
    for name, values in tensors.items():
        if ".experts." not in name or name.endswith("_scales"):
            continue
        start, rest = name.split(".experts.")
        suffix, kind = ".weight", None
        if rest.endswith("_blocks"):
            values, kind = packed(values, tensors[name.replace("_blocks", "_scales")]), gguf.GGMLQuantizationType.MXFP4
        elif rest.endswith("_bias"):
            suffix = ".bias"
        else:
            values = values.swapaxes(1, 2)
        parts = {"gate_proj": values[:, ::2], "up_proj": values[:, 1::2]} if rest.startswith("gate_up") else {"down_proj": values}
        for part, rows in parts.items():
            full = names.get_name(f"{start}.experts.{part}{suffix}", try_suffixes=(".weight", ".bias"))
            out.add_tensor(full, np.ascontiguousarray(rows), raw_dtype=kind)


def add_tensors(out, model, c, arch, folder):
    names = gguf.get_tensor_name_map(next(a for a, n in gguf.MODEL_ARCH_NAMES.items() if n == arch), c.num_hidden_layers)
    if arch == "gpt-oss":
        add_gpt_oss_experts(out, names, folder_peers.load_file(folder / "model.safetensors"))
    stacks = {}
    for name, weights in model.state_dict().items():
        if name == "lm_head.weight" and c.tie_word_embeddings:
            continue
        values = weights.float().numpy()
        if arch in INTERLEAVED and (".q_proj." in name or ".k_proj." in name):
            values = in_turn(values, c.num_attention_heads if ".q_proj." in name else c.num_key_value_heads)
        if arch.startswith("gemma") and name.endswith("norm.weight"):
            values = values + 1
        parts = name.split(".experts.")
        if len(parts) == 2 and arch == "gpt-oss":
            continue
        if name.endswith(".sinks"):
            name += ".weight"
        if len(parts) == 2:
            number, rest = parts[1].split(".", 1)
            stacks.setdefault((parts[0], rest), {})[int(number)] = values
            continue
        out.add_tensor(names.get_name(name, try_suffixes=(".weight", ".bias")), np.ascontiguousarray(values))
    for (start, rest), experts in stacks.items():
        name = names.get_name(f"{start}.experts.{rest}", try_suffixes=(".weight", ".bias"))
        out.add_tensor(name, np.stack([experts[e] for e in sorted(experts)]))


def add_vocabulary(out, tokenizer):
    """That of the tokenizer's own twin, with more tokens as far as the table goes."""
    for key, field in gguf.GGUFReader(HERE / "model_tokenizers" / f"{tokenizer}.gguf").fields.items():
        if not key.startswith("tokenizer."):
            continue
        value, kind = field.contents(), field.types
        more = folder_peers.VOCABULARY - len(value) if key.endswith((".tokens", ".scores", ".token_type")) else 0
        if key.endswith(".tokens"):
            value = value + [f"[PAD{len(value) + i}]" for i in range(more)]
        elif more:
            value = value + [-1e4 if key.endswith(".scores") else int(gguf.TokenType.UNUSED)] * more
        out.add_key_value(key, value, kind[0], kind[-1] if len(kind) > 1 else None)


def main():
    binaries = pathlib.Path(sys.argv[1])
    cases, failed = json.loads((HERE / "families.json").read_text()), []
    for name, changes, arch, tokenizer in TWINS:
        if len(sys.argv) > 2 and name not in sys.argv[2:]:
            continue
        with tempfile.TemporaryDirectory() as directory:
            folder, file = pathlib.Path(directory, "folder"), pathlib.Path(directory, "model.gguf")
            folder_peers.make_folder({**cases[name]["config"], **changes}, tokenizer, folder, name.endswith("mxfp4"))
            model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
            out = gguf.GGUFWriter(file, arch)
            add_settings(out, model.config, arch, model)
            add_vocabulary(out, tokenizer)
            add_tensors(out, model, model.config, arch, folder)
            out.write_header_to_file()
            out.write_kv_data_to_file()
            out.write_tensors_to_file()
            out.close()
            if not folder_peers.compare(name, binaries, str(file), folder):
                failed.append(name)
    sys.exit(bool(failed))


main()
