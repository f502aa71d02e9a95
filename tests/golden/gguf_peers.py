"""Has others read a GGUF file that `hark-model convert` wrote: llama.cpp (llama-cpp-python) and
transformers, next to the Hugging Face folder it was made of.

    python3 tests/golden/gguf_peers.py FOLDER FILE.gguf [PROMPT]

Prints the root mean square of transformers' logits' difference, over that of the logits, and whether
the greedy tokens after PROMPT are the same in llama.cpp as in transformers with the folder. A peer
that is not installed is named. Needs torch, transformers, gguf and accelerate."""
import os
import pathlib
import sys

os.environ["HF_HUB_OFFLINE"] = "1"
sys.path.pop(0)  # kernels.py next to this file is not the package that transformers looks for
import torch
import transformers

TOKENS = 64


def greedy_of_llama_cpp(file, ids):
    import llama_cpp
    model = llama_cpp.Llama(str(file), n_ctx=512, logits_all=False, verbose=False, n_threads=2)
    found = []
    for token in model.generate(ids, temp=0.0, top_k=1, repeat_penalty=1.0):
        found.append(token)
        if len(found) == TOKENS:
            return found


def main():
    folder, file = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    prompt = sys.argv[3] if len(sys.argv) > 3 else "And so my fellow Americans"
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"))
    ids = tokenizer.encode(prompt)
    inputs = torch.tensor([ids])
    with torch.no_grad():
        expected = model(inputs).logits
        greedy = model.generate(inputs, max_new_tokens=TOKENS, min_new_tokens=TOKENS,
                                do_sample=False)[0, len(ids):].tolist()
        same = transformers.AutoModelForCausalLM.from_pretrained(
            file.parent, gguf_file=file.name, dtype=torch.float32).eval()
        off = same(inputs).logits - expected
    print(f"{file.name}: transformers: {off.pow(2).mean().sqrt() / expected.pow(2).mean().sqrt():.2g}")
    try:
        found = greedy_of_llama_cpp(file, ids)
    except ImportError:
        print(f"{file.name}: llama-cpp-python is not installed")
        return
    equal = next((i for i in range(TOKENS) if found[i] != greedy[i]), TOKENS)
    print(f"{file.name}: llama.cpp: {equal} of {TOKENS} greedy tokens equal")


main()
