"""The stored parts of packed matrices by formula, and the formats' own code that widens them. Imported
by packed.py, which says which packages these are.
"""
import importlib.util
import logging
import os
import sys

import numpy as np
import torch

from formula_weights import MASK, mixed, name_hash

sys.path.pop(0)  # transformers looks for a package that is named as our kernels.py
from bitsandbytes.functional import (QuantState, dequantize_4bit, int8_vectorwise_dequant,
                                     quantize_4bit)
from compressed_tensors.compressors.base import BaseCompressor
from compressed_tensors.entrypoints.convert.converters.autoawq import AutoAWQConverter
from compressed_tensors.entrypoints.convert.converters.fp8block_dequantizer import (
    FP8BlockDequantizer)
from compressed_tensors.quantization import QuantizationScheme


def load_qlinear():
    """auto-gptq's module of matrices; the package itself needs peft and its kernels."""
    folder = importlib.util.find_spec("auto_gptq").submodule_search_locations[0]
    spec = importlib.util.spec_from_file_location(
        "qlinear_cuda", os.path.join(folder, "nn_modules/qlinear/qlinear_cuda.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.QuantLinear


logging.disable(logging.WARNING)
QuantLinear = load_qlinear()

TYPES = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16, "I32": torch.int32,
         "I64": torch.int64, "I8": torch.int8, "U8": torch.uint8, "F8_E4M3": torch.float8_e4m3fn}


def bits_of(name, count):
    with np.errstate(over="ignore"):
        start = np.uint64((name_hash(name) + 0x9E3779B97F4A7C15) & MASK)
        return mixed(start + np.arange(count, dtype=np.uint64))


def uniform(name, count):
    return (bits_of(name, count) >> np.uint64(40)).astype(np.float64) / 8388608 - 1


def plain(name, shape, dtype):
    """A tensor of the model that is not packed; test::FamilyWeights has the same values."""
    u = uniform(name.removeprefix("model."), int(np.prod(shape)))
    if "norm" in name:
        result = 1 + 0.171875 * u
    else:
        result = (0.09375 if len(shape) == 1 else 0.140625) * u
    return torch.from_numpy(result.astype(np.float32).reshape(shape)).to(dtype)


def part(name, spec):
    """A part by formula; tests/gpt/packed_test.cc makes the same."""
    dtype, shape = spec["dtype"], spec["shape"]
    count = int(np.prod(shape))
    if "values" in spec:
        return torch.tensor(spec["values"], dtype=TYPES[dtype]).reshape(shape)
    if dtype in ("F32", "F16", "BF16"):
        values = (spec["scale"] * (1.25 + 0.75 * uniform(name, count))).astype(np.float32)
        return torch.from_numpy(values.reshape(shape)).to(TYPES[dtype])
    if dtype == "I32":
        values = (bits_of(name, count) >> np.uint64(32)).astype(np.uint32).view(np.int32)
        return torch.from_numpy(values.reshape(shape))
    values = (bits_of(name, count) >> np.uint64(56)).astype(np.uint8)
    if dtype == "F8_E4M3":  # 0x7f and 0xff are NaN
        values = np.where(values & 0x7f == 0x7f, values ^ 1, values)
    return torch.from_numpy(values.reshape(shape)).view(TYPES[dtype])


def words(n, bits):
    return -(-n * bits // 32)


class Compressed:
    """compressed-tensors: the scheme of all modules, or of those whose name has a word."""

    def __init__(self, format, scale_dtype="BF16", scale=0.0, ignore=("lm_head",), groups=None,
                 g_idx=False, **weights):
        self.groups = groups or [(["Linear"], format, scale, weights)]
        self.scale_dtype, self.ignore, self.g_idx = scale_dtype, list(ignore), g_idx
        self.format = format

    def config(self):
        groups = {f"group_{i}": dict(targets=targets, format=format, weights=weights,
                                     input_activations=None, output_activations=None)
                  for i, (targets, format, _, weights) in enumerate(self.groups)}
        return dict(quant_method="compressed-tensors", format=self.format, config_groups=groups,
                    ignore=self.ignore, quantization_status="compressed", kv_cache_scheme=None,
                    sparsity_config={}, transform_config={}, version="0.20.0")

    def group_of(self, module):
        return next(group for group in self.groups
                    if group[0] == ["Linear"] or any(t[5:] in module for t in group[0]))

    def scheme_of(self, module):
        targets, format, _, weights = self.group_of(module)
        return format, QuantizationScheme(targets=targets, weights=weights, format=format)

    def parts(self, module, rows, columns):
        format, scheme = self.scheme_of(module)
        args = scheme.weights
        grid = {"tensor": [1], "channel": [rows, 1],
                "group": [rows, columns // (args.group_size or columns)]}
        if args.strategy == "block":
            height, width = args.block_structure
            shape = [-(-rows // height), -(-columns // width)]
        else:
            shape = grid[args.strategy]
        parts = dict(weight_scale=dict(dtype=self.scale_dtype, shape=shape,
                                       scale=self.group_of(module)[2]))
        if format == "pack-quantized":
            bits = args.num_bits
            parts["weight_packed"] = dict(dtype="I32", shape=[rows, words(columns, bits)])
            parts["weight_shape"] = dict(dtype="I64", shape=[2], values=[rows, columns])
            if not args.symmetric:
                parts["weight_zero_point"] = dict(dtype="I32", shape=[words(rows, bits), shape[1]])
            if self.g_idx:
                order = [j * 7 % columns // args.group_size for j in range(columns)]
                parts["weight_g_idx"] = dict(dtype="I32", shape=[columns], values=order)
        else:
            kind = "F8_E4M3" if args.type == "float" else "I8"
            parts["weight"] = dict(dtype=kind, shape=[rows, columns])
            if not args.symmetric:
                parts["weight_zero_point"] = dict(dtype="I8", shape=shape)
        return parts

    def kept(self, module):
        """The type of blocks that hold the numbers, if they do."""
        weights = self.group_of(module)[3]
        is_plain = weights["type"] == "int" and weights["symmetric"] and not self.g_idx
        kinds = {4: "q4_0", 8: "q8_0"}
        return kinds.get(weights["num_bits"]) if is_plain else None

    def widen(self, module, parts):
        format, scheme = self.scheme_of(module)
        order = parts.pop("weight_g_idx", None)
        if order is not None:  # 0.20 no longer reads it: columns in the order of their groups
            packed = BaseCompressor.get_value_from_registry(format)
            by_group = torch.argsort(order, stable=True)
            flat = dict(parts, weight_scale=torch.ones(parts["weight_scale"].shape))
            numbers = packed.decompress(flat, scheme)["weight"]
            scales = parts["weight_scale"].repeat_interleave(scheme.weights.group_size, 1)
            result = torch.empty(numbers.shape, dtype=scales.dtype)
            result[:, by_group] = numbers[:, by_group].to(scales.dtype) * scales
            return result
        self.check_parts(format, scheme, parts)
        compressor = BaseCompressor.get_value_from_registry(format)
        return compressor.decompress(dict(parts), scheme)["weight"]

    @staticmethod
    def check_parts(format, scheme, parts):
        """The package itself stores such parts."""
        compressor = BaseCompressor.get_value_from_registry(format)
        shape = parts["weight_shape"].tolist() if "weight_shape" in parts else parts["weight"].shape
        made = dict(weight=torch.ones(tuple(shape), dtype=parts["weight_scale"].dtype),
                    weight_scale=parts["weight_scale"])
        if not scheme.weights.symmetric:
            made["weight_zero_point"] = torch.zeros(parts["weight_scale"].shape, dtype=torch.int8)
        made = compressor.compress(made, scheme)
        found = {name: (value.dtype, tuple(value.shape)) for name, value in made.items()}
        assert found == {name: (value.dtype, tuple(value.shape)) for name, value in parts.items()}


class Fp8:
    """fp8 in blocks, as DeepSeek-V3 and Qwen3 have it; fbgemm_fp8, and fp8 with one scale."""

    def __init__(self, method="fp8", block=None, shape=None, scale_dtype="F32", scale=0.0008):
        self.method, self.block, self.shape = method, block, shape
        self.scale_dtype, self.scale = scale_dtype, scale

    def config(self):
        if self.block:
            return dict(quant_method="fp8", activation_scheme="dynamic", fmt="e4m3",
                        weight_block_size=self.block)
        if self.method == "fbgemm_fp8":
            return dict(quant_method="fbgemm_fp8", activation_scale_ub=1200.0,
                        modules_to_not_convert=["lm_head"])
        return dict(quant_method="fp8", activation_scheme="static", ignored_layers=["lm_head"])

    def parts(self, module, rows, columns):
        if self.block:
            height, width = self.block
            shape = [-(-rows // height), -(-columns // width)]
        else:
            shape = [rows, 1] if self.method == "fbgemm_fp8" else self.shape
        return {"weight": dict(dtype="F8_E4M3", shape=[rows, columns]),
                "weight_scale_inv" if self.block else "weight_scale":
                    dict(dtype=self.scale_dtype, shape=shape, scale=self.scale)}

    def widen(self, module, parts):
        if not self.block:
            return parts["weight"].to(torch.float32) * parts["weight_scale"]
        converter = FP8BlockDequantizer(weight_block_size=self.block, dtype=torch.float32)
        made = converter.process({"m." + name: value for name, value in parts.items()})
        return made["m.weight"]


class Awq:
    """AutoAWQ, read by way of compressed-tensors, which converts it."""

    def __init__(self, group_size=32, scale=0.012):
        self.group_size, self.scale = group_size, scale

    def config(self):
        return dict(quant_method="awq", bits=4, group_size=self.group_size, version="gemm",
                    zero_point=True, modules_to_not_convert=None)

    def parts(self, module, rows, columns):
        groups = columns // (self.group_size if self.group_size > 0 else columns)
        return dict(qweight=dict(dtype="I32", shape=[columns, rows // 8]),
                    qzeros=dict(dtype="I32", shape=[groups, rows // 8]),
                    scales=dict(dtype="F16", shape=[groups, rows], scale=self.scale))

    def widen(self, module, parts):
        columns = parts["qweight"].shape[0]
        size = self.group_size if self.group_size > 0 else columns
        converter = AutoAWQConverter(group_size=size, ignore=())
        made = converter.process({"m." + name: value for name, value in parts.items()})
        scheme = QuantizationScheme(targets=["Linear"], weights=dict(
            num_bits=4, type="int", symmetric=False, strategy="group", group_size=size))
        packed = BaseCompressor.get_value_from_registry("pack-quantized")
        made = {name.removeprefix("m."): value for name, value in made.items()}
        return packed.decompress(made, scheme)["weight"]


class Gptq:
    """AutoGPTQ: its QuantLinear multiplies a unit matrix. Format "gptq_v2": the same zero points,
    one of which `gptq` stores less 1."""

    def __init__(self, bits, scale, group_size=32, order=False, v2=False, g_idx=True, dynamic=False,
                 sym=False):
        self.bits, self.scale, self.group_size, self.order = bits, scale, group_size, order
        self.v2, self.g_idx, self.dynamic, self.sym = v2, g_idx, dynamic, sym

    def kept(self, module):
        is_plain = self.sym and not self.order
        return {4: "q4_0", 8: "q8_0"}.get(self.bits_of(module)) if is_plain else None

    def config(self):
        made = dict(quant_method="gptq", bits=self.bits, group_size=self.group_size,
                    desc_act=self.order, sym=self.sym, true_sequential=True, lm_head=False)
        if self.v2:
            made["checkpoint_format"] = "gptq_v2"
        if self.dynamic:
            made["dynamic"] = {"+:.*down_proj": dict(bits=8)}
        return made

    def bits_of(self, module):
        return 8 if self.dynamic and "down_proj" in module else self.bits

    def parts(self, module, rows, columns):
        bits, size = self.bits_of(module), self.group_size if self.group_size > 0 else columns
        groups, scale = columns // size, self.scale * 2 ** (self.bits - bits)
        order = [(j * 7 % columns if self.order else j) // size for j in range(columns)]
        parts = dict(qweight=dict(dtype="I32", shape=[columns * bits // 32, rows]),
                     qzeros=dict(dtype="I32", shape=[groups, rows * bits // 32]),
                     scales=dict(dtype="F16", shape=[groups, rows], scale=scale))
        if self.sym:
            word = {4: 0x77777777, 8: 0x7f7f7f7f}[bits] + (0x11111111 if self.v2 else 0)
            signed = word - (1 << 32 if word >> 31 else 0)
            parts["qzeros"]["values"] = [signed] * (groups * rows * bits // 32)
        if self.g_idx:
            parts["g_idx"] = dict(dtype="I32", shape=[columns], values=order)
        return parts

    def widen(self, module, parts):
        rows, bits = parts["qweight"].shape[1], self.bits_of(module)
        columns = parts["qweight"].shape[0] * 32 // bits
        linear = QuantLinear(bits, self.group_size, columns, rows, False)
        shift = 1 if self.v2 else 0
        linear.load_state_dict(dict(linear.state_dict(), **parts), strict=True)
        widened = linear(torch.eye(columns, dtype=torch.float16)).t().contiguous()
        if not shift:
            return widened
        # The product has one zero point too many: each value is scale less than in "gptq_v2".
        scales = parts["scales"].float()[linear.g_idx.long()].t()
        numbers = torch.round(widened.float() / scales) + shift
        return (numbers * scales).to(torch.float16)


class BitsAndBytes:
    """bitsandbytes' four bits, from its own QuantState, and eight."""

    def __init__(self, kind="nf4", nested=True, dtype="bfloat16", blocksize=64):
        self.kind, self.nested, self.dtype, self.blocksize = kind, nested, dtype, blocksize

    def config(self):
        if self.kind == "int8":
            return dict(quant_method="bitsandbytes", load_in_8bit=True, load_in_4bit=False)
        return dict(quant_method="bitsandbytes", load_in_4bit=True, load_in_8bit=False,
                    bnb_4bit_quant_type=self.kind, bnb_4bit_use_double_quant=self.nested,
                    bnb_4bit_compute_dtype=self.dtype, bnb_4bit_quant_storage="uint8")

    def parts(self, module, rows, columns):
        if self.kind == "int8":
            return {"weight": dict(dtype="I8", shape=[rows, columns]),
                    "SCB": dict(dtype="F32", shape=[rows], scale=0.13),
                    "weight_format": dict(dtype="U8", shape=[], values=[0])}
        weight = torch.linspace(-0.25, 0.25, rows * columns).reshape(rows, columns)
        made, state = quantize_4bit(weight.to(getattr(torch, self.dtype)), quant_type=self.kind,
                                    blocksize=self.blocksize, compress_statistics=self.nested)
        names = {v: k for k, v in TYPES.items()}
        parts = {"weight": dict(dtype="U8", shape=list(made.shape))}
        for name, value in state.as_dict(packed=True).items():
            spec = dict(dtype=names[value.dtype], shape=list(value.shape))
            if name in ("quant_map", "nested_quant_map") or "quant_state" in name:
                spec["values"] = [float(x) if value.is_floating_point() else int(x) for x in value]
            elif value.is_floating_point():
                spec["scale"] = 0.09
            parts["weight." + name] = spec
        return parts

    def widen(self, module, parts):
        if self.kind == "int8":
            return int8_vectorwise_dequant(parts["weight"], parts["SCB"])
        state = QuantState.from_dict(
            {name.removeprefix("weight."): value for name, value in parts.items()
             if name != "weight"}, device="cpu")
        return dequantize_4bit(parts["weight"], state)
