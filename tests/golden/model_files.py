"""Writes a Hugging Face Whisper model as others publish theirs: OpenAI's .pt with openai-whisper's rank
file next to it, and CTranslate2 directories.

    model_files.py HUGGING_FACE_DIR OUT_DIR     the model, for HARK_MODEL_FILES of model_files_test
    model_files.py --small OUT_DIR              tests/golden/model_files: a model of one small layer

Needs torch, transformers, safetensors and ctranslate2."""
import base64
import json
import pathlib
import sys

sys.path.pop(0)  # kernels.py next to this file is not the package that transformers looks for
import ctranslate2
import torch
import transformers
from ctranslate2.converters.transformers import WhisperLoader
from safetensors.torch import load_file

RENAMED = [
    ("model.", ""), ("layers", "blocks"), ("encoder_attn_layer_norm", "cross_attn_ln"),
    ("self_attn_layer_norm", "attn_ln"), ("final_layer_norm", "mlp_ln"), ("self_attn", "attn"),
    ("encoder_attn", "cross_attn"), ("q_proj", "query"), ("k_proj", "key"), ("v_proj", "value"),
    ("out_proj", "out"), ("fc1", "mlp.0"), ("fc2", "mlp.2"),
    ("embed_positions.weight", "positional_embedding"), ("embed_tokens", "token_embedding"),
    ("encoder.layer_norm", "encoder.ln_post"), ("decoder.layer_norm", "decoder.ln")]
QUANTIZATIONS = ["float32", "float16", "bfloat16", "int8", "int8_float32", "int8_float16"]


def openai_name(name):
    for old, new in RENAMED:
        name = name.replace(old, new)
    return name


def write_openai(directory, out, dtype=None):
    config = json.loads((directory / "config.json").read_text())
    dims = {"n_mels": config["num_mel_bins"], "n_vocab": config["vocab_size"],
            "n_audio_ctx": config["max_source_positions"], "n_audio_state": config["d_model"],
            "n_audio_head": config["encoder_attention_heads"], "n_audio_layer": config["encoder_layers"],
            "n_text_ctx": config["max_target_positions"], "n_text_state": config["d_model"],
            "n_text_head": config["decoder_attention_heads"], "n_text_layer": config["decoder_layers"]}
    stored = load_file(directory / "model.safetensors")
    state = {openai_name(name): tensor.to(dtype or tensor.dtype) for name, tensor in stored.items()
             if name != "proj_out.weight"}
    torch.save({"dims": dims, "model_state_dict": state}, out)


def write_ranks(directory, out):
    """The tokens before <|endoftext|> as a tiktoken rank file."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    alphabet = {chr(byte): byte for byte in printable}
    alphabet |= {chr(0x100 + i): byte for i, byte in enumerate(others)}
    vocab = json.loads((directory / "vocab.json").read_text())
    lines = []
    for token, rank in sorted(vocab.items(), key=lambda item: item[1]):
        if token.startswith("<|"):
            break
        lines.append(f"{base64.b64encode(bytes(alphabet[c] for c in token)).decode()} {rank}\n")
    out.write_text("".join(lines))


def write_ctranslate2(directory, out, quantization):
    ctranslate2.converters.TransformersConverter(str(directory)).convert(
        str(out), quantization=quantization, force=True)


def write_small(out):
    """One layer of random weights, as torch.save and CTranslate2 write it."""
    torch.manual_seed(6)
    config = transformers.WhisperConfig(
        vocab_size=64, d_model=8, encoder_layers=1, decoder_layers=1, encoder_attention_heads=1,
        decoder_attention_heads=1, encoder_ffn_dim=32, decoder_ffn_dim=32, num_mel_bins=4,
        max_target_positions=16, pad_token_id=0, bos_token_id=0, eos_token_id=0,
        decoder_start_token_id=1, suppress_tokens=[], begin_suppress_tokens=[])
    model = transformers.WhisperForConditionalGeneration(config).to(torch.float16)
    for parameter in model.parameters():  # biases too: none of them is 0
        parameter.data = torch.randn(parameter.shape).to(torch.float16)
    model.save_pretrained(out / "hugging-face")
    write_openai(out / "hugging-face", out / "small.pt")
    # What the converter does of a model that has a tokenizer.
    loader = WhisperLoader()
    spec = loader.get_model_spec(model)
    spec.register_vocabulary([str(i) for i in range(config.vocab_size)])
    spec.validate()
    spec.optimize(quantization="int8_float16")
    (out / "ctranslate2").mkdir(exist_ok=True)
    spec.save(str(out / "ctranslate2"))


if __name__ == "__main__":
    if sys.argv[1] == "--small":
        out = pathlib.Path(sys.argv[2])
        write_small(out)
    else:
        source, out = map(pathlib.Path, sys.argv[1:])
        out.mkdir(parents=True, exist_ok=True)
        write_ranks(source, out / "multilingual.tiktoken")
        write_openai(source, out / "float16.pt")
        write_openai(source, out / "float32.pt", torch.float32)
        write_openai(source, out / "bfloat16.pt", torch.bfloat16)
        for quantization in QUANTIZATIONS:
            write_ctranslate2(source, out / quantization, quantization)
