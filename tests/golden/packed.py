"""Matrices of quantised Hugging Face folders, widened by the formats' own code, and greedy tokens of
tiny models of these matrices, from transformers in float32 (tests/gpt/packed_test.cc).

    python3 tests/golden/packed.py > tests/golden/packed.json

with transformers 4.57.6, compressed-tensors 0.20.0, auto-gptq 0.7.1 and bitsandbytes 0.50.2, the
last three installed with --no-deps. Stored parts are by formula, all bits of integers are random:
the file has configurations, the parts' types and shapes, hashes of the widened matrices, and the
tokens that follow the first 8. Matrices that hark keeps as blocks of q4_0 or q8_0 are not rounded in
the model of the tokens.
"""
import json
import os
import sys

os.environ["HF_HUB_OFFLINE"] = "1"

import torch

from packed_formats import TYPES, Awq, BitsAndBytes, Compressed, Fp8, Gptq, part, plain
from formula_weights import MASK

import transformers as T

torch.set_num_threads(1)
VOCAB, PROMPT, GREEDY = 128, 8, 40
BASE = dict(vocab_size=VOCAB, hidden_size=160, intermediate_size=288, num_hidden_layers=2,
            num_attention_heads=4, num_key_value_heads=2, head_dim=32, max_position_embeddings=256,
            pad_token_id=0, bos_token_id=1, eos_token_id=None)

INT4 = dict(num_bits=4, type="int", symmetric=True, strategy="group", group_size=32)
# name: the format, the model's class, settings, dtype of config.json
CASES = {
    "compressed-tensors, int4 groups": (
        Compressed("pack-quantized", scale=0.017, **INT4), "Llama", {}, "bfloat16"),
    "compressed-tensors, int4 groups, zero points": (
        Compressed("pack-quantized", "F16", 0.012, **{**INT4, "symmetric": False}), "Llama", {},
        "float16"),
    "compressed-tensors, int4 groups in another order": (
        Compressed("pack-quantized", scale=0.017, g_idx=True, **INT4), "Llama", {}, "bfloat16"),
    "compressed-tensors, int8 rows, packed": (
        Compressed("pack-quantized", scale=0.001, num_bits=8, type="int", symmetric=True,
                   strategy="channel"), "Qwen2", dict(intermediate_size=99), "bfloat16"),
    "compressed-tensors, int3 rows, zero points": (
        Compressed("pack-quantized", scale=0.03, num_bits=3, type="int", symmetric=False,
                   strategy="channel"), "Llama", dict(intermediate_size=99), "bfloat16"),
    "compressed-tensors, int8 rows": (
        Compressed("int-quantized", scale=0.001, num_bits=8, type="int", symmetric=True,
                   strategy="channel"), "Llama", {}, "bfloat16"),
    "compressed-tensors, int8 rows, zero points": (
        Compressed("int-quantized", "F32", 0.0008, num_bits=8, type="int", symmetric=False,
                   strategy="channel"), "Llama", {}, "float32"),
    "compressed-tensors, fp8 rows": (
        Compressed("float-quantized", scale=0.0008, num_bits=8, type="float", symmetric=True,
                   strategy="channel"), "Llama", {}, "bfloat16"),
    "compressed-tensors, fp8 matrices": (
        Compressed("float-quantized", "F32", 0.0008, ignore=["re:.*lm_head"], num_bits=8,
                   type="float", symmetric=True, strategy="tensor"), "Qwen3", {}, "bfloat16"),
    "compressed-tensors, fp8 blocks": (
        Compressed("float-quantized", scale=0.0008, num_bits=8, type="float", symmetric=True,
                   strategy="block", block_structure=[128, 128]), "Llama", {}, "bfloat16"),
    "compressed-tensors, two groups": (
        Compressed("mixed-precision", groups=[
            (["Linear"], "pack-quantized", 0.017, INT4),
            (["re:.*down_proj", "re:.*v_proj"], "float-quantized", 0.0008,
             dict(num_bits=8, type="float", symmetric=True, strategy="channel"))][::-1]),
        "Llama", {}, "bfloat16"),
    "fp8, blocks": (Fp8(block=[128, 128]), "Qwen3", {}, "bfloat16"),
    "fp8, blocks, experts": (
        Fp8(block=[128, 128], scale_dtype="BF16"), "Qwen3Moe",
        dict(num_experts=4, num_experts_per_tok=2, moe_intermediate_size=136, norm_topk_prob=True),
        "bfloat16"),
    "fp8, matrices": (Fp8(shape=[]), "Llama", {}, "float16"),
    "fbgemm_fp8": (Fp8("fbgemm_fp8"), "Llama", {}, "bfloat16"),
    "awq": (Awq(), "Llama", {}, "float16"),
    "awq, one group": (Awq(-1), "Qwen2", {}, "bfloat16"),
    "gptq, 2 bits": (Gptq(2, 0.06), "Llama", {}, "float16"),
    "gptq, 3 bits": (Gptq(3, 0.024, order=True), "Llama", {}, "float16"),
    "gptq, 4 bits": (Gptq(4, 0.012), "Llama", {}, "float16"),
    "gptq, 4 bits, act-order": (Gptq(4, 0.012, order=True), "Qwen2", {}, "bfloat16"),
    "gptq_v2, 4 bits, rows": (Gptq(4, 0.012, group_size=-1, v2=True, g_idx=False), "Llama", {},
                              "float16"),
    "gptq, 4 bits, symmetric": (Gptq(4, 0.017, sym=True), "Llama", {}, "float16"),
    "gptq, 4 bits, symmetric, act-order": (Gptq(4, 0.017, order=True, sym=True), "Llama", {},
                                           "float16"),
    "gptq_v2, 4 bits, symmetric, rows": (
        Gptq(4, 0.017, group_size=-1, v2=True, g_idx=False, sym=True), "Llama", {}, "bfloat16"),
    "gptq, 8 bits, symmetric": (Gptq(8, 0.001, sym=True), "Qwen2", {}, "float16"),
    "gptq, 8 bits": (Gptq(8, 0.0008, group_size=-1), "Llama", {}, "float16"),
    "gptq, 4 and 8 bits": (Gptq(4, 0.012, dynamic=True), "Llama", {}, "float16"),
    "bitsandbytes, nf4, nested": (BitsAndBytes(), "Llama", {}, "bfloat16"),
    "bitsandbytes, nf4": (BitsAndBytes(nested=False, dtype="float16", blocksize=128), "Qwen2",
                          dict(intermediate_size=99), "float16"),
    "bitsandbytes, fp4, nested": (BitsAndBytes("fp4", dtype="float32"), "Llama", {}, "float32"),
    "bitsandbytes, int8": (BitsAndBytes("int8"), "Llama", {}, "float16"),
}


def fnv1a(data):
    value = 0xCBF29CE484222325
    for byte in data:
        value = ((value ^ byte) * 0x100000001B3) & MASK
    return f"{value:016x}"


def exact(parts, matrix):
    """The values before they were rounded: numbers of at most eight bits times f16's or bf16's."""
    scales = parts["scales"].t() if "scales" in parts else parts["weight_scale"]
    assert torch.equal(scales.to(torch.float16).float(), scales.float())
    scales = scales.float().repeat_interleave(matrix.shape[1] // scales.shape[1], 1)
    return torch.round(matrix.float() / scales) * scales


def tensors_of(format, model, dtype):
    """What the folder's tensors are: None of a plain one, and the widened model's weights."""
    stored, widened, hashes, kept = {}, {}, {}, {}
    for name, parameter in model.state_dict().items():
        module = name.removesuffix(".weight")
        is_packed = (parameter.dim() == 2 and "embed" not in name and "lm_head" not in name
                     and not name.endswith("mlp.gate.weight"))
        if not is_packed:
            stored[name] = dict(dtype={v: k for k, v in TYPES.items()}[dtype],
                                shape=list(parameter.shape), plain=True)
            widened[name] = plain(name, tuple(parameter.shape), dtype)
            continue
        specs = format.parts(module, *parameter.shape)
        parts = {key: part(f"{module}.{key}", spec) for key, spec in specs.items()}
        stored.update({f"{module}.{key}": spec for key, spec in specs.items()})
        matrix = format.widen(module, parts)
        if matrix.dtype == torch.float32:
            matrix = matrix.to(dtype)
        assert tuple(matrix.shape) == tuple(parameter.shape), (name, matrix.shape)
        widened[name] = matrix
        block = format.kept(module) if hasattr(format, "kept") else None
        if block and parameter.shape[1] % 32 == 0:
            kept[name] = block
            widened[name] = exact(parts, matrix)
        hashes[name] = fnv1a(matrix.contiguous().view(torch.uint8).numpy().tobytes())
    return stored, widened, hashes, kept


def share_values(stored):
    """Lists of values, which most modules have in common, by name."""
    shared = {}
    for spec in stored.values():
        if len(spec.get("values", [])) > 2:
            key = fnv1a(json.dumps(spec["values"]).encode())
            shared[key], spec["values"] = spec["values"], key
    return shared


def main():
    ids = torch.tensor([[(i * 37 + 11) % VOCAB for i in range(PROMPT)]])
    out = {}
    for name, (format, kind, settings, dtype) in CASES.items():
        config = getattr(T, kind + "Config")(**{**BASE, **settings})
        config._attn_implementation = "eager"
        model = getattr(T, kind + "ForCausalLM")(config).eval()
        stored, widened, hashes, kept = tensors_of(format, model, getattr(torch, dtype))
        model.load_state_dict({key: value.float() for key, value in widened.items()})
        with torch.no_grad():
            whole = model.generate(ids, max_new_tokens=GREEDY, do_sample=False, output_logits=True,
                                   return_dict_in_generate=True)
        logits = torch.cat(whole.logits)
        best = logits.topk(2, dim=-1).values
        distance = ((best[:, 0] - best[:, 1]) / logits.abs().amax(dim=-1)).min()
        assert distance > 1e-4, (name, distance)
        print(name, float(logits.std()), float(distance), file=sys.stderr)
        written = {key: value for key, value in config.to_dict().items()
                   if key in BASE or key in settings or key in (
                       "model_type", "tie_word_embeddings", "rope_theta", "rms_norm_eps",
                       "hidden_act", "attention_bias", "mlp_only_layers", "decoder_sparse_step")}
        written.update(dtype=dtype, quantization_config=format.config())
        out[name] = dict(config=written, shared=share_values(stored), stored=stored, widened=hashes, kept=kept, prompt=ids[0].tolist(),
                         greedy=whole.sequences[0, PROMPT:].tolist())
    print(json.dumps(out, separators=(",", ":")))


if __name__ == "__main__":
    main()
