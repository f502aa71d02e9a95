"""Has transformers read Hugging Face folders that `hark-model convert` wrote from GGUF files, and
compares them with what gpt-generate makes of those files.

    python3 tests/golden/folder_peers.py BIN                    # tiny random models of the families
    python3 tests/golden/folder_peers.py BIN FILE.gguf FOLDER   # a file, and the folder made of it

Prints how many of the prompt's ids and of 64 greedy tokens are equal, and the largest difference of
log probabilities: of each token, and of the five likeliest at its place. BIN is the folder of
gpt-generate and hark-model. Exit status 1 where ids or tokens differ, or a difference is above 1e-4.
The tiny models are saved by transformers and go from their folder to GGUF in f32 and back. Needs
torch 2 and transformers 4.57."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

os.environ["HF_HUB_OFFLINE"] = "1"
sys.path.pop(0)  # kernels.py next to this file is not the package that transformers looks for
import numpy as np
import torch
import transformers
from safetensors.numpy import load_file, save_file

HERE = pathlib.Path(__file__).resolve().parent
TOKENS, LIKELIEST, LARGEST, VOCABULARY = 64, 5, 1e-4, 640
PROMPT = "And so my fellow Americans, 1984 times:  don't\n\nask"
NO_WINDOW = dict(sliding_window=None)
# Cases of families.json with what GGUF can say of them, and a tokenizer.
FAMILIES = [
    ("llama", "llama3", {}),
    ("llama, biases, odd heads, linear", "llama2", {}),
    ("mistral, window", "tekken", NO_WINDOW),
    ("qwen2, tied", "qwen2", {}),
    ("qwen3", "qwen2", {}),
    ("gemma2", "gemma", dict(query_pre_attn_scalar=32, layer_types=None)),
    ("gemma3", "gemma", dict(query_pre_attn_scalar=32, layer_types=None, sliding_window_pattern=6,
                              num_hidden_layers=7)),
    ("phi3, window", "phi3", {}),
    ("smollm3", "smollm3", dict(no_rope_layers=None, no_rope_layer_interval=4, num_hidden_layers=5, layer_types=None,
                                use_sliding_window=False)),
    ("olmo2", "olmo2", {}),
    ("granite", "granite", {}),
    ("mixtral", "llama2", NO_WINDOW),
    ("qwen3_moe", "qwen2", {}),
    ("deepseek_v3", "deepseek_llm", {}),
    ("gpt_oss", "gpt_oss", {}),
    ("gpt_oss, mxfp4", "gpt_oss", {}),
]


def of_hark(binaries, file):
    command = [binaries / "gpt-generate", "--model", file, "--dtype", "f32", "--prompt", PROMPT,
               "--temperature", "0", "--max-tokens", str(TOKENS), "--ignore-eos", "--logprobs",
               str(LIKELIEST), "--format", "jsonl", "--quiet"]
    line = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    return line["prompt_tokens"], line["logprobs"]["content"]


def is_token(found, text):
    return "\ufffd" in text or bytes(found["bytes"]).decode(errors="replace").strip() == text.strip()


def compare(name, binaries, file, folder):
    count, found = of_hark(binaries, file)
    model = transformers.AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager").eval().float()  # of mxfp4 it makes bf16
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    ids = tokenizer.encode(PROMPT)
    same_ids, equal, largest = len(ids) == count, 0, 0.0
    with torch.no_grad():
        for at in found:
            logs = model(torch.tensor([ids])).logits[0, -1].double().log_softmax(-1)
            token = int(logs.argmax())
            own = [one["logprob"] for one in at["top_logprobs"]]
            pairs = [(float(logs[token]), at["logprob"]), *zip(logs.topk(LIKELIEST).values.tolist(), own)]
            largest = max(largest, *(abs(a - b) for a, b in pairs))
            equal += is_token(at, tokenizer.decode([token]))
            ids.append(token)
    print(f"{name}: {'the same' if same_ids else 'OTHER'} ids of the prompt, {equal} of {TOKENS} tokens equal, "
          f"log probabilities within {largest:.2g}", flush=True)
    return same_ids and equal == TOKENS and largest <= LARGEST


def put_blocks(folder):
    """Random blocks of mxfp4 in place of the experts' matrices, as gpt-oss is published."""
    path, random = folder / "model.safetensors", np.random.default_rng(1)
    tensors = load_file(path)
    for name in [name for name in tensors if name.endswith(("gate_up_proj", "down_proj"))]:
        experts, columns, rows = tensors.pop(name).shape
        tensors[name + "_blocks"] = random.integers(0, 256, (experts, rows, columns // 32, 16), np.uint8)
        tensors[name + "_scales"] = random.integers(121, 124, (experts, rows, columns // 32), np.uint8)
    save_file(tensors, path, {"format": "pt"})
    config = json.loads((folder / "config.json").read_text())
    config["quantization_config"] = {"quant_method": "mxfp4"}
    (folder / "config.json").write_text(json.dumps(config))


def make_folder(config, tokenizer, folder, has_blocks=False):
    """A random model, saved by transformers."""
    torch.manual_seed(1)
    settings = {**config, "vocab_size": VOCABULARY, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
                "initializer_range": 0.15}
    kind = settings.pop("model_type")
    model = transformers.AutoModelForCausalLM.from_config(transformers.AutoConfig.for_model(kind, **settings))
    with torch.no_grad():
        for name, weights in model.named_parameters():
            if weights.dim() == 1:  # norms and biases, whose values of the beginning hide errors
                weights += 0.1 * torch.randn_like(weights)
    model.save_pretrained(folder)
    if has_blocks:
        put_blocks(folder)
    golden = json.loads((HERE / "model_tokenizers" / f"{tokenizer}.json").read_text())
    (folder / "tokenizer.json").write_text(json.dumps(golden["tokenizer"]))
    config = {"tokenizer_class": "PreTrainedTokenizerFast", **golden["config"]}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))


def main():
    binaries = pathlib.Path(sys.argv[1])
    if len(sys.argv) > 2:
        sys.exit(not compare(sys.argv[3], binaries, sys.argv[2], sys.argv[3]))
    cases, failed = json.loads((HERE / "families.json").read_text()), []
    for name, tokenizer, changes in FAMILIES:
        with tempfile.TemporaryDirectory() as directory:
            folder, file, back = (pathlib.Path(directory) / part for part in ("folder", "model.gguf", "back"))
            make_folder({**cases[name]["config"], **changes}, tokenizer, folder, name.endswith("mxfp4"))
            for paths in ((folder, file), (file, back)):
                subprocess.run([binaries / "hark-model", "convert", *paths, "--type", "f32"], check=True)
            if not compare(name, binaries, file, back):
                failed.append(name)
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
