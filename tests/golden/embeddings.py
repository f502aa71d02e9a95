"""Makes tests/golden/embeddings.json: vectors of texts by tiny models, from transformers in float32
(tests/tools/gpt_embed_test.cc).

    python3 tests/golden/embeddings.py      # transformers 4.57

Weights are by formula, as in families.py; the tokenizer is model_tokenizers/qwen2.json with the
post-processor of the case. `files` are those of a folder of sentence-transformers' kind. `last`,
`mean` and `first` are unit vectors by that pooling, of each text with `query` before it or not.
"""
import json
import os
import pathlib
import sys

os.environ["HF_HUB_OFFLINE"] = "1"

import torch

from families import values

sys.path = [path for path in sys.path if path != str(pathlib.Path(__file__).parent)]
import transformers as T
from tokenizers import Tokenizer

HERE = pathlib.Path(__file__).resolve().parent
BASE = dict(vocab_size=512, hidden_size=64, intermediate_size=96, num_hidden_layers=2,
            num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=64)
QUERY = "Find what answers this: "
TEXTS = ["The old captain walked home.", "a", "Gr\u00fc\u00dfe aus K\u00f6ln!", "  two  spaces ",
         "one <|im_end|> two", "rain fell on every roof of the town until morning came"]
END = dict(type="Sequence", processors=[
    dict(type="ByteLevel", add_prefix_space=False, trim_offsets=False, use_regex=False),
    dict(type="TemplateProcessing",
         single=[dict(Sequence=dict(id="A", type_id=0)),
                 dict(SpecialToken=dict(id="<|endoftext|>", type_id=0))],
         pair=[dict(Sequence=dict(id="A", type_id=0)),
               dict(SpecialToken=dict(id="<|endoftext|>", type_id=0)),
               dict(Sequence=dict(id="B", type_id=1)),
               dict(SpecialToken=dict(id="<|endoftext|>", type_id=1))],
         special_tokens={"<|endoftext|>": dict(id="<|endoftext|>", ids=[480],
                                               tokens=["<|endoftext|>"])})])
MODULES = [dict(idx=i, name=str(i), path=path, type="sentence_transformers.models." + kind)
           for i, (path, kind) in enumerate((("", "Transformer"), ("1_Pooling", "Pooling"),
                                             ("2_Normalize", "Normalize")))]


def pooling(kind):
    return dict(word_embedding_dimension=64, pooling_mode_cls_token=kind == "first",
                pooling_mode_mean_tokens=kind == "mean", pooling_mode_max_tokens=False,
                pooling_mode_mean_sqrt_len_tokens=False,
                pooling_mode_weightedmean_tokens=False, pooling_mode_lasttoken=kind == "last",
                include_prompt=True)


def files(kind):
    return {"modules.json": MODULES, "1_Pooling/config.json": pooling(kind),
            "config_sentence_transformers.json": dict(
                prompts=dict(query=QUERY, document=""), default_prompt_name=None)}


# name: configuration's and model's class, settings, post-processor, files
CASES = {
    "qwen3": ("Qwen3", dict(head_dim=32, tie_word_embeddings=True), END, files("last")),
    "llama": ("Llama", dict(tie_word_embeddings=True), None, files("mean")),
}


def vectors(model, tokenizer, texts):
    of = dict(last=[], mean=[], first=[])
    for text in texts:
        ids = torch.tensor([tokenizer.encode(text).ids])
        with torch.no_grad():
            states = model(ids).last_hidden_state[0]
        for kind, state in (("last", states[-1]), ("mean", states.mean(0)), ("first", states[0])):
            unit = torch.nn.functional.normalize(state, dim=0)
            of[kind].append([float(f"{x:.7g}") for x in unit])
    return of


def main():
    torch.set_num_threads(1)
    out = dict(texts=TEXTS, query=QUERY, cases={})
    for name, (kind, settings, post_processor, of_files) in CASES.items():
        tokenizer_json = json.loads((HERE / "model_tokenizers/qwen2.json").read_text())["tokenizer"]
        if post_processor:
            tokenizer_json["post_processor"] = post_processor
        tokenizer = Tokenizer.from_str(json.dumps(tokenizer_json))
        config = getattr(T, kind + "Config")(**{**BASE, **settings})
        config._attn_implementation = "eager"
        model = getattr(T, kind + "Model")(config).eval()
        with torch.no_grad():
            for parameter, tensor in model.named_parameters():
                tensor.copy_(values(parameter, tuple(tensor.shape), False))
        written = {key: value for key, value in config.to_dict().items()
                   if key in BASE or key in settings or key in ("model_type", "rope_theta",
                                                                "rms_norm_eps", "hidden_act")}
        own = next(k for k in ("last", "mean", "first")
                   if of_files["1_Pooling/config.json"] == pooling(k))
        out["cases"][name] = dict(
            config=written, post_processor=post_processor, files=of_files, pooling=own,
            tokens=[len(tokenizer.encode(text).ids) for text in TEXTS],
            plain=vectors(model, tokenizer, TEXTS),
            query=vectors(model, tokenizer, [QUERY + text for text in TEXTS[:2]])[own])
    (HERE / "embeddings.json").write_text(json.dumps(out, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
