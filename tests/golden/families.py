"""Logits and greedy tokens of tiny models of every family, from transformers in float32
(tests/gpt/families_test.cc).

    python3 tests/golden/families.py > tests/golden/families.json     # transformers 4.57
    python3 tests/golden/families.py NAME ... > OUT     # as the file, with the cases NAME... made again

Weights are by formula (formula_weights.py): uniform, spread 0.14, biases 0.09; norms 1 + 0.17 u
(Gemma's stored weights 0.17 u); blocks and scales of mxfp4 are bytes. So the file has configurations and results only. `rows` of the
logits are those of a prompt of 48 tokens; `greedy` are the tokens that follow the first 8. `near` lists its steps whose two best logits are within 1e-4 of the largest.
"""
import json
import math
import os
import pathlib
import sys

os.environ["HF_HUB_OFFLINE"] = "1"

import numpy as np
import torch

from formula_weights import MASK, mixed, name_hash

sys.path.pop(0)  # transformers looks for a package that is named as our kernels.py
import transformers as T
from transformers.integrations.mxfp4 import convert_moe_packed_tensors

torch.set_num_threads(1)
VOCAB, ROWS, PROMPT, GREEDY = 128, [0, 7, 8, 20, 47], 8, 200

BASE = dict(vocab_size=VOCAB, hidden_size=64, intermediate_size=96, num_hidden_layers=4,
            num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=256,
            pad_token_id=0, bos_token_id=1, eos_token_id=None)
LLAMA3 = dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
              original_max_position_embeddings=32)
LONGROPE = dict(type="longrope", short_factor=[1.0, 1.1, 1.2, 1.3],
                long_factor=[1.5, 2.0, 3.0, 4.0])
YARN = dict(rope_type="yarn", factor=4.0, original_max_position_embeddings=64)
DEEPSEEK_YARN = dict(type="yarn", factor=8.0, original_max_position_embeddings=32, beta_fast=32.0,
                     beta_slow=1.0, mscale=0.707, mscale_all_dim=0.707)
# Latent attention: the sizes of a head's three parts differ, and from the latent row's.
LATENT = dict(num_key_value_heads=4, kv_lora_rank=24, qk_nope_head_dim=16, qk_rope_head_dim=8,
              v_head_dim=20, first_k_dense_replace=1, moe_intermediate_size=32)
GPT_OSS_YARN = dict(rope_type="yarn", factor=4.0, beta_fast=32.0, beta_slow=1.0, truncate=False,
                    original_max_position_embeddings=64)

# name: configuration's class, model's class, settings; what each one is there for
CASES = {
    "llama": ("Llama", dict(rope_theta=500000.0, rope_scaling=LLAMA3)),
    "llama, biases, odd heads, linear": (
        "Llama", dict(attention_bias=True, head_dim=20, num_key_value_heads=4,
                      rope_scaling=dict(rope_type="linear", factor=2.0))),
    "mistral, window": ("Mistral", dict(sliding_window=8, head_dim=32)),
    "qwen2, tied": ("Qwen2", dict(tie_word_embeddings=True)),
    "qwen2, yarn, windows": (
        "Qwen2", dict(rope_scaling=YARN, use_sliding_window=True, sliding_window=8,
                      max_window_layers=2)),
    "qwen3": ("Qwen3", dict(head_dim=32)),
    "gemma2": ("Gemma2", dict(head_dim=32, query_pre_attn_scalar=24, sliding_window=8)),
    "gemma3": ("Gemma3Text", dict(head_dim=32, query_pre_attn_scalar=24, sliding_window=8,
                                  sliding_window_pattern=2,
                                  rope_scaling=dict(rope_type="linear", factor=8.0))),
    "phi3, longrope": (
        "Phi3", dict(partial_rotary_factor=0.5, original_max_position_embeddings=32,
                     rope_scaling=LONGROPE)),
    "phi3, window": ("Phi3", dict(sliding_window=9, rope_theta=250000.0)),
    "smollm3": ("SmolLM3", dict(no_rope_layer_interval=2)),
    "olmo2": ("Olmo2", {}),
    "olmo3, yarn, other layers": (
        "Olmo3", dict(head_dim=20, sliding_window=8, rope_scaling=YARN,
                      layer_types=["full_attention", "sliding_attention", "sliding_attention",
                                   "full_attention"])),
    "olmo3, biases, tied": (
        "Olmo3", dict(attention_bias=True, tie_word_embeddings=True, num_key_value_heads=4,
                      num_hidden_layers=6, sliding_window=5)),
    "granite": ("Granite", dict(embedding_multiplier=12.0, attention_multiplier=0.1,
                                residual_multiplier=0.22, logits_scaling=8.0)),
    "mixtral": ("Mixtral", dict(num_local_experts=4, num_experts_per_tok=2)),
    "mixtral, window": ("Mixtral", dict(num_local_experts=5, num_experts_per_tok=3, head_dim=32,
                                        sliding_window=8)),
    "qwen3_moe": ("Qwen3Moe", dict(head_dim=32, num_experts=8, num_experts_per_tok=3,
                                   moe_intermediate_size=32, norm_topk_prob=True)),
    "qwen3_moe, dense layers": (
        "Qwen3Moe", dict(head_dim=32, num_experts=6, num_experts_per_tok=2, decoder_sparse_step=2,
                         num_hidden_layers=6, moe_intermediate_size=40, mlp_only_layers=[3],
                         norm_topk_prob=False, use_sliding_window=True, sliding_window=8)),
    "gpt_oss": ("GptOss", dict(head_dim=32, num_local_experts=4, num_experts_per_tok=2,
                               sliding_window=8, intermediate_size=64, rope_scaling=GPT_OSS_YARN)),
    "gpt_oss, mxfp4": ("GptOss", dict(head_dim=32, num_local_experts=4, num_experts_per_tok=3,
                                      sliding_window=8, intermediate_size=64,
                                      rope_scaling=GPT_OSS_YARN)),
    "deepseek_v2, lite": (
        "DeepseekV2", dict(LATENT, q_lora_rank=None, n_routed_experts=8, num_experts_per_tok=3,
                           n_shared_experts=2, topk_method="greedy", n_group=1, topk_group=1,
                           rope_scaling=DEEPSEEK_YARN, tie_word_embeddings=True)),
    "deepseek_v2, groups": (
        "DeepseekV2", dict(LATENT, q_lora_rank=40, n_routed_experts=12, num_experts_per_tok=4,
                           n_shared_experts=1, topk_method="group_limited_greedy", n_group=4,
                           topk_group=2, routed_scaling_factor=4.0,
                           rope_scaling=dict(DEEPSEEK_YARN, mscale=1.0))),
    "deepseek_v3": (
        "DeepseekV3", dict(LATENT, rms_norm_eps=1e-3, q_lora_rank=40, n_routed_experts=12, num_experts_per_tok=4,
                           n_shared_experts=1, n_group=4, topk_group=2, routed_scaling_factor=2.5,
                           norm_topk_prob=True, qk_rope_head_dim=12,
                           rope_scaling=dict(DEEPSEEK_YARN, mscale=1.0, mscale_all_dim=1.0))),
    "deepseek_v3, weights of any sum": (
        "DeepseekV3", dict(LATENT, q_lora_rank=None, n_routed_experts=6, num_experts_per_tok=2,
                           n_shared_experts=2, n_group=1, topk_group=1, first_k_dense_replace=2,
                           routed_scaling_factor=1.5, norm_topk_prob=False)),
}
MODELS = {"Gemma3Text": "Gemma3ForCausalLM"}


def mixed_of(name, count):
    with np.errstate(over="ignore"):
        start = np.uint64((name_hash(name) + 0x9E3779B97F4A7C15) & MASK)
        return mixed(start + np.arange(count, dtype=np.uint64))


def values(name, shape, is_gemma):
    """The tensor by formula; tests/support/family_weights.h does the same."""
    u = (mixed_of(name, int(np.prod(shape))) >> np.uint64(40)).astype(np.float64) / 8388608 - 1
    if "norm" in name:
        result = (0.0 if is_gemma else 1.0) + 0.171875 * u
    else:
        result = (0.09375 if len(shape) == 1 else 0.140625) * u
    return torch.from_numpy(result.astype(np.float32).reshape(shape))


def mxfp4(name, rows):
    """The values (E, rows, 64) that blocks and scales of mxfp4 by formula stand for, turned as
    GptOssExperts has them."""
    bytes_of = lambda part, last: torch.from_numpy(
        (mixed_of(name + part, 4 * rows * 2 * last) >> np.uint64(56)).astype(np.uint8)
        .reshape(4, rows, 2, *[last] * (last > 1)))
    scales = bytes_of("_scales", 1) % 4 + 122
    return convert_moe_packed_tensors(bytes_of("_blocks", 16), scales, dtype=torch.float32)


def scale_as_published(config, model):
    """DeepSeek-V2's own code multiplies the scores by the square of yarn's mscale_all_dim, as V3's
    does. transformers 4.57 leaves it out; later ones have it (huggingface/transformers#47435)."""
    factor = config.rope_scaling["factor"]
    mscale = 0.1 * config.rope_scaling["mscale_all_dim"] * math.log(factor) + 1
    for layer in model.model.layers:
        layer.self_attn.scaling *= mscale * mscale


def model_of(kind, settings, has_mxfp4=False):
    config = getattr(T, kind + "Config")(**{**BASE, **settings})
    config._attn_implementation = "eager"
    model = getattr(T, MODELS.get(kind, kind + "ForCausalLM"))(config).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(values(name.removeprefix("model."), tuple(parameter.shape),
                                   kind.startswith("Gemma")))
            if has_mxfp4 and name.endswith("_proj") and "experts" in name:
                stored = name.removeprefix("model.")
                parameter.copy_(mxfp4(stored, 128 if "gate_up" in name else 64))
        for name, buffer in model.named_buffers():
            if "e_score_correction" in name:
                buffer.copy_(values(name.removeprefix("model."), tuple(buffer.shape), False))
    if kind == "DeepseekV2" and config.rope_scaling:
        scale_as_published(config, model)
    return config, model


def greedy(model, ids, has_longrope):
    """The tokens and logits of GREEDY steps. transformers 4.57 masks the step that crosses
    longrope's original length as if every token saw all others, so such a model is run without a
    cache there."""
    if not has_longrope:
        whole = model.generate(ids, max_new_tokens=GREEDY, do_sample=False, output_logits=True,
                               return_dict_in_generate=True)
        return whole.sequences[0, ids.shape[1]:].tolist(), torch.cat(whole.logits)
    tokens, steps = [], []
    for _ in range(GREEDY):
        logits = model(ids, use_cache=False).logits[0, -1]
        steps.append(logits)
        tokens.append(int(logits.argmax()))
        ids = torch.cat([ids, torch.tensor([[tokens[-1]]])], dim=1)
    return tokens, torch.stack(steps)


def near_steps(logits):
    best = logits.topk(2, dim=-1).values
    largest = logits.abs().amax(dim=-1)
    return torch.nonzero(best[:, 0] - best[:, 1] < 1e-4 * largest).flatten().tolist()


def main():
    ids = torch.tensor([[(i * 37 + 11) % VOCAB for i in range(48)]])
    out = {}
    if len(sys.argv) > 1:
        out = json.loads((pathlib.Path(__file__).parent / "families.json").read_text())
    for name in sys.argv[1:] or CASES:
        kind, settings = CASES[name]
        config, model = model_of(kind, settings, "mxfp4" in name)
        with torch.no_grad():
            logits = model(ids).logits[0]
            tokens, steps = greedy(model, ids[:, :PROMPT], "longrope" in name)
        written = {key: value for key, value in config.to_dict().items()
                   if key in BASE or key in settings or key in (
                       "model_type", "tie_word_embeddings", "head_dim", "sliding_window",
                       "layer_types", "rope_theta", "rms_norm_eps", "hidden_act",
                       "hidden_activation", "attention_bias", "rope_local_base_freq",
                       "query_pre_attn_scalar", "attn_logit_softcapping",
                       "final_logit_softcapping", "no_rope_layers", "partial_rotary_factor", "num_experts",
                       "mlp_only_layers", "decoder_sparse_step")}
        out[name] = dict(config=written, tokens=ids[0].tolist(),
                         rows={str(row): [float(f"{x:.8g}") for x in logits[row]] for row in ROWS},
                         greedy=tokens, near=near_steps(steps))
    print(json.dumps(out, separators=(",", ":")))


if __name__ == "__main__":
    main()
