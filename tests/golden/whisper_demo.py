"""The demo model in openai-whisper's own classes.

Imported by the scripts of this folder. The weights come from a Hugging Face directory
(models/whisper-demo); only what depends on the vocabulary is adapted: the tokenizer, whether the
model is multilingual, and how many languages it knows.
"""

import functools
import json
import pathlib
import sys

import tiktoken
import torch
import whisper.decoding
import whisper.tokenizer
from safetensors.torch import load_file
from whisper.model import ModelDimensions, Whisper

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
PATTERN = (
    r"""'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"""
)


def openai_name(name):
    """A tensor's name in openai-whisper for its name in a Hugging Face checkpoint."""
    name = name.removeprefix("model.")
    for there, here in (
        (".layers.", ".blocks."),
        (".self_attn_layer_norm.", ".attn_ln."),
        (".encoder_attn_layer_norm.", ".cross_attn_ln."),
        (".final_layer_norm.", ".mlp_ln."),
        (".self_attn.", ".attn."),
        (".encoder_attn.", ".cross_attn."),
        (".q_proj.", ".query."),
        (".k_proj.", ".key."),
        (".v_proj.", ".value."),
        (".out_proj.", ".out."),
        (".fc1.", ".mlp.0."),
        (".fc2.", ".mlp.2."),
        ("encoder.layer_norm.", "encoder.ln_post."),
        ("decoder.layer_norm.", "decoder.ln."),
        (".embed_positions.weight", ".positional_embedding"),
        (".embed_tokens.", ".token_embedding."),
    ):
        name = name.replace(there, here)
    return name


def byte_of_character():
    """The GPT-2 map from the characters of vocab.json to the bytes they stand for."""
    visible = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [byte for byte in range(256) if byte not in visible]
    table = {chr(byte): byte for byte in visible}
    table.update({chr(256 + i): byte for i, byte in enumerate(hidden)})
    return table


class DemoWhisper(Whisper):
    """openai-whisper guesses both from the size of the official vocabularies."""

    is_multilingual = True
    num_languages = 99


@functools.lru_cache(maxsize=None)
def encoding(directory):
    vocabulary = json.loads((directory / "vocab.json").read_text(encoding="utf-8"))
    generation = json.loads((directory / "generation_config.json").read_text())
    end_of_text = generation["eos_token_id"]
    table = byte_of_character()
    ranks = {
        bytes(table[character] for character in token): rank
        for token, rank in vocabulary.items()
        if rank < end_of_text
    }
    assert len(ranks) == end_of_text
    specials = [
        "<|endoftext|>",
        "<|startoftranscript|>",
        *[f"<|{code}|>" for code in list(whisper.tokenizer.LANGUAGES)[:99]],
        "<|translate|>",
        "<|transcribe|>",
        "<|startoflm|>",
        "<|startofprev|>",
        "<|nospeech|>",
        "<|notimestamps|>",
        *[f"<|{i * 0.02:.2f}|>" for i in range(1501)],
    ]
    ids = {token: end_of_text + i for i, token in enumerate(specials)}
    assert ids["<|notimestamps|>"] == generation["no_timestamps_token_id"]
    assert ids["<|su|>"] == generation["lang_to_id"]["<|su|>"]
    return tiktoken.Encoding(
        name="whisper-demo",
        explicit_n_vocab=end_of_text + len(specials),
        pat_str=PATTERN,
        mergeable_ranks=ranks,
        special_tokens=ids,
    )


def load(directory):
    """The model in float32, and its tokenizer put in place of openai-whisper's."""
    config = json.loads((directory / "config.json").read_text())
    dims = ModelDimensions(
        n_mels=config["num_mel_bins"],
        n_audio_ctx=config["max_source_positions"],
        n_audio_state=config["d_model"],
        n_audio_head=config["encoder_attention_heads"],
        n_audio_layer=config["encoder_layers"],
        n_vocab=config["vocab_size"],
        n_text_ctx=config["max_target_positions"],
        n_text_state=config["d_model"],
        n_text_head=config["decoder_attention_heads"],
        n_text_layer=config["decoder_layers"],
    )
    model = DemoWhisper(dims)
    weights = {
        openai_name(name): tensor.float()
        for name, tensor in load_file(directory / "model.safetensors").items()
        if name != "proj_out.weight"
    }
    missing, unexpected = model.load_state_dict(weights, strict=False)
    assert not unexpected and all("alignment_heads" in name for name in missing), (
        missing,
        unexpected,
    )
    model.eval()

    @functools.lru_cache(maxsize=None)
    def get_tokenizer(multilingual, *, num_languages=99, language=None, task=None):
        return whisper.tokenizer.Tokenizer(
            encoding=encoding(directory),
            num_languages=num_languages,
            language=language or "en",
            task=task or "transcribe",
        )

    whisper.tokenizer.get_tokenizer = get_tokenizer
    whisper.decoding.get_tokenizer = get_tokenizer
    # The name whisper.transcribe is the function; its module is in sys.modules.
    sys.modules["whisper.transcribe"].get_tokenizer = get_tokenizer
    return model, get_tokenizer(True, num_languages=99, language="en", task="transcribe")
