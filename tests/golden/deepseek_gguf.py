"""Writes tiny DeepSeek models as GGUF files, with the gguf package, into tests/golden/model_files/deepseek
(tests/gpt/deepseek_test.cc).

    python3 tests/golden/deepseek_gguf.py     # gguf 0.19

Weights are those of families.py, rounded to f16. v2-older.gguf has kv_b in one tensor, as files until
April 2025 have it; v2.gguf and v3.gguf have its two parts, head by head and that of keys turned.
v2.json and v3.json are the same models' config.json."""
import json
import pathlib

import numpy as np
import torch

from families import values  # first: its sys.path is the one to import transformers with
import gguf

OUT = pathlib.Path(__file__).parent / "model_files" / "deepseek"
YARN = dict(type="yarn", factor=8.0, original_max_position_embeddings=32, beta_fast=32.0,
            beta_slow=1.0)
SHARED = dict(
    vocab_size=64, hidden_size=32, intermediate_size=48, moe_intermediate_size=16,
    num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=2, max_position_embeddings=128,
    rms_norm_eps=1e-6, hidden_act="silu", kv_lora_rank=20, qk_nope_head_dim=16, qk_rope_head_dim=8,
    v_head_dim=12, n_routed_experts=6, num_experts_per_tok=2, n_shared_experts=1,
    first_k_dense_replace=1, n_group=3, topk_group=2, rope_theta=10000.0, eos_token_id=63)
CONFIGS = {
    "v2": dict(SHARED, model_type="deepseek_v2", q_lora_rank=None, scoring_func="softmax",
               topk_method="group_limited_greedy", norm_topk_prob=False, routed_scaling_factor=2.0,
               rope_scaling=dict(YARN, mscale=0.707, mscale_all_dim=0.707)),
    "v3": dict(SHARED, model_type="deepseek_v3", q_lora_rank=24, scoring_func="sigmoid",
               topk_method="noaux_tc", norm_topk_prob=True, routed_scaling_factor=2.5,
               rope_scaling=dict(YARN, mscale=1.0, mscale_all_dim=1.0)),
}


def shapes(c):
    """The tensors of a checkpoint, with a layer's experts in one."""
    hidden, heads = c["hidden_size"], c["num_attention_heads"]
    query = heads * (c["qk_nope_head_dim"] + c["qk_rope_head_dim"])
    rank = c["kv_lora_rank"]
    out = {"embed_tokens.weight": (c["vocab_size"], hidden), "norm.weight": (hidden,),
           "lm_head.weight": (c["vocab_size"], hidden)}
    for i in range(c["num_hidden_layers"]):
        at = f"layers.{i}."
        out |= {at + "input_layernorm.weight": (hidden,),
                at + "post_attention_layernorm.weight": (hidden,),
                at + "self_attn.kv_a_proj_with_mqa.weight": (rank + c["qk_rope_head_dim"], hidden),
                at + "self_attn.kv_a_layernorm.weight": (rank,),
                at + "self_attn.kv_b_proj.weight": (
                    heads * (c["qk_nope_head_dim"] + c["v_head_dim"]), rank),
                at + "self_attn.o_proj.weight": (hidden, heads * c["v_head_dim"])}
        if c["q_lora_rank"]:
            out |= {at + "self_attn.q_a_proj.weight": (c["q_lora_rank"], hidden),
                    at + "self_attn.q_a_layernorm.weight": (c["q_lora_rank"],),
                    at + "self_attn.q_b_proj.weight": (query, c["q_lora_rank"])}
        else:
            out[at + "self_attn.q_proj.weight"] = (query, hidden)
        if i < c["first_k_dense_replace"]:
            mlps = {"mlp.": c["intermediate_size"]}
        else:
            mlps = {"mlp.experts.": c["moe_intermediate_size"],
                    "mlp.shared_experts.": c["moe_intermediate_size"] * c["n_shared_experts"]}
            out[at + "mlp.gate.weight"] = (c["n_routed_experts"], hidden)
            if c["model_type"] == "deepseek_v3":
                out[at + "mlp.gate.e_score_correction_bias"] = (c["n_routed_experts"],)
        for mlp, width in mlps.items():
            out |= {at + mlp + "gate_proj.weight": (width, hidden),
                    at + mlp + "up_proj.weight": (width, hidden),
                    at + mlp + "down_proj.weight": (hidden, width)}
    return out


def tensor(name, shape, c):
    if ".experts." not in name:
        return values(name, shape, False)
    return torch.stack([values(name.replace(".experts.", f".experts.{e}."), shape, False)
                        for e in range(c["n_routed_experts"])])


def parts_of_kv_b(name, kv_b, c):
    of_heads = kv_b.reshape(c["num_attention_heads"], -1, c["kv_lora_rank"])
    keys, nope = name.replace("kv_b_proj", "k_b_proj"), c["qk_nope_head_dim"]
    yield keys, of_heads[:, :nope].transpose(1, 2)
    yield name.replace("kv_b_proj", "v_b_proj"), of_heads[:, nope:]


def add_settings(writer, c, older):
    writer.add_context_length(c["max_position_embeddings"])
    writer.add_embedding_length(c["hidden_size"])
    writer.add_block_count(c["num_hidden_layers"])
    writer.add_feed_forward_length(c["intermediate_size"])
    writer.add_head_count(c["num_attention_heads"])
    writer.add_head_count_kv(c["num_attention_heads"] if older else 1)
    writer.add_layer_norm_rms_eps(c["rms_norm_eps"])
    writer.add_rope_freq_base(c["rope_theta"])
    writer.add_rope_dimension_count(c["qk_rope_head_dim"])
    writer.add_kv_lora_rank(c["kv_lora_rank"])
    if c["q_lora_rank"]:
        writer.add_q_lora_rank(c["q_lora_rank"])
    query = c["qk_nope_head_dim"] + c["qk_rope_head_dim"]
    if older:
        writer.add_key_length(query)
        writer.add_value_length(c["v_head_dim"])
    else:
        writer.add_key_length(c["kv_lora_rank"] + c["qk_rope_head_dim"])
        writer.add_value_length(c["kv_lora_rank"])
        writer.add_key_length_mla(query)
        writer.add_value_length_mla(c["v_head_dim"])
    writer.add_leading_dense_block_count(c["first_k_dense_replace"])
    writer.add_expert_feed_forward_length(c["moe_intermediate_size"])
    writer.add_expert_count(c["n_routed_experts"])
    writer.add_expert_used_count(c["num_experts_per_tok"])
    writer.add_expert_shared_count(c["n_shared_experts"])
    writer.add_expert_group_count(c["n_group"])
    writer.add_expert_group_used_count(c["topk_group"])
    writer.add_expert_weights_scale(c["routed_scaling_factor"])
    if c["norm_topk_prob"]:
        writer.add_expert_weights_norm(True)
    if c["scoring_func"] == "sigmoid":  # older files of V2 have no key
        writer.add_expert_gating_func(gguf.ExpertGatingFuncType.SIGMOID)
    scaling = c["rope_scaling"]
    writer.add_rope_scaling_type(gguf.RopeScalingType.YARN)
    writer.add_rope_scaling_factor(scaling["factor"])
    writer.add_rope_scaling_orig_ctx_len(scaling["original_max_position_embeddings"])
    writer.add_rope_scaling_yarn_log_mul(0.1 * scaling["mscale_all_dim"])
    writer.add_eos_token_id(c["eos_token_id"])


def write(path, c, older):
    writer = gguf.GGUFWriter(path, "deepseek2")
    add_settings(writer, c, older)
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.DEEPSEEK2, c["num_hidden_layers"])
    for name, shape in shapes(c).items():
        parts = [(name, tensor(name, shape, c))]
        if "kv_b_proj" in name and not older:
            parts = parts_of_kv_b(*parts[0], c)
        for part, stored in parts:
            whole = part if part.startswith("lm_head") else "model." + part
            whole = whole.replace("_correction_bias", "_correction.bias")
            is_matrix = stored.dim() > 1 and ".gate.weight" not in part
            writer.add_tensor(names.get_name(whole, try_suffixes=(".weight", ".bias")),
                              stored.contiguous().numpy().astype(
                                  np.float16 if is_matrix else np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    for name, config in CONFIGS.items():
        (OUT / f"{name}.json").write_text(json.dumps(config) + "\n")
        write(OUT / f"{name}.gguf", config, False)
    write(OUT / "v2-older.gguf", CONFIGS["v2"], True)


main()
