"""Writes tests/golden/model_files/hugging-face as CTranslate2's own specification writes it with quantization int16.
model_files.py writes the other types with its converter, which needs torch; this needs numpy, safetensors, ctranslate2.

    ctranslate2_int16.py OUT_DIR     tests/golden/model_files/ctranslate2-int16

Source: OpenNMT/CTranslate2 python/ctranslate2/converters/transformers.py, WhisperLoader."""
import pathlib
import sys

import numpy as np
from ctranslate2.specs import WhisperSpec
from safetensors.numpy import load_file

GOLDEN = pathlib.Path(__file__).parent / "model_files/hugging-face/model.safetensors"
TENSORS = {name.removeprefix("model."): value for name, value in load_file(GOLDEN).items()}


def set_norm(spec, name):
    spec.gamma, spec.beta = TENSORS[name + ".weight"], TENSORS[name + ".bias"]


def set_linear(spec, *names):
    """The modules one below the other; keys have no bias."""
    weights = [TENSORS[name + ".weight"] for name in names]
    spec.weight = np.concatenate(weights)
    spec.bias = np.concatenate([TENSORS.get(name + ".bias", np.zeros(len(weight), weight.dtype))
                                for name, weight in zip(names, weights)])


def set_attention(spec, name, norm, fused):
    set_norm(spec.layer_norm, norm)
    for linear, modules in zip(spec.linear, fused):
        set_linear(linear, *(f"{name}.{module}" for module in modules))


def set_ffn(spec, name):
    set_norm(spec.layer_norm, name + ".final_layer_norm")
    set_linear(spec.linear_0, name + ".fc1")
    set_linear(spec.linear_1, name + ".fc2")


spec = WhisperSpec(1, 1, 1, 1)
for part in ("encoder", "decoder"):
    side, layer, name = getattr(spec, part), getattr(spec, part).layer[0], f"{part}.layers.0"
    side.position_encodings.encodings = TENSORS[part + ".embed_positions.weight"]
    set_norm(side.layer_norm, part + ".layer_norm")
    set_attention(layer.self_attention, name + ".self_attn", name + ".self_attn_layer_norm",
                  (("q_proj", "k_proj", "v_proj"), ("out_proj",)))
    set_ffn(layer.ffn, name)
set_linear(spec.encoder.conv1, "encoder.conv1")
set_linear(spec.encoder.conv2, "encoder.conv2")
set_attention(spec.decoder.layer[0].attention, "decoder.layers.0.encoder_attn",
              "decoder.layers.0.encoder_attn_layer_norm", (("q_proj",), ("k_proj", "v_proj"), ("out_proj",)))
spec.decoder.embeddings.weight = TENSORS["decoder.embed_tokens.weight"]
spec.decoder.projection.weight = spec.decoder.embeddings.weight
spec.register_vocabulary([str(i) for i in range(spec.decoder.embeddings.weight.shape[0])])
spec.validate()
spec.optimize(quantization="int16")
out = pathlib.Path(sys.argv[1])
out.mkdir(parents=True, exist_ok=True)
spec.save(str(out))
