"""Losses and gradients of tiny models of several families, from transformers in float32
(tests/gpt/family_training_test.cc).

    python3 tests/golden/family_gradients.py > tests/golden/family_gradients.json

With PyTorch 2.15 and transformers 4.57. Weights are by formula (families.py). Two sequences are
run one after the other; `losses` are those of their rows, and the gradients are of the mean over
all rows. A tensor's gradient is given by its norm, its largest magnitude and up to SAMPLES values
at equal distances.
"""
import json

import families as F
import torch

VOCAB, SAMPLES = 125, 64
LENGTHS = [25, 18]  # of the sequences, which have one target less
YARN = dict(F.YARN, original_max_position_embeddings=16)

# what each one is there for: see the names
CASES = {
    "llama, grouped heads": (
        "Llama", dict(rope_theta=500000.0, rope_scaling=F.LLAMA3, tie_word_embeddings=False)),
    "llama, biases of attention, gelu, yarn": (
        "Llama", dict(attention_bias=True, head_dim=20, num_key_value_heads=4, rope_scaling=YARN,
                      hidden_act="gelu_pytorch_tanh")),
    "mistral, one head of keys and values": (
        "Mistral", dict(sliding_window=None, head_dim=32, num_key_value_heads=1)),
    "qwen2, biases, tied": ("Qwen2", dict(tie_word_embeddings=True)),
    "qwen3, norms of heads": ("Qwen3", dict(head_dim=32)),
    "smollm3, a layer without positions": ("SmolLM3", dict(no_rope_layer_interval=2)),
    "phi3, fused tensors": ("Phi3", dict(partial_rotary_factor=0.5)),
}


def sampled(gradient):
    flat = gradient.flatten()
    count = min(SAMPLES, len(flat))
    places = [i * (len(flat) - 1) // max(count - 1, 1) for i in range(count)]
    return dict(norm=float(f"{flat.double().norm():.9g}"),
                largest=float(f"{flat.abs().max():.9g}"),
                listed=[float(f"{flat[i]:.8g}") for i in places])


def main():
    out = {}
    for name, (kind, settings) in CASES.items():
        # PyTorch gives the row of a padding token no gradient.
        config, model = F.model_of(kind, dict(settings, vocab_size=VOCAB, num_hidden_layers=2,
                                              pad_token_id=None))
        sequences = [[(i * 37 + 11 * s + i * i * s) % VOCAB for i in range(n)]
                     for s, n in enumerate(LENGTHS)]
        rows = sum(len(ids) - 1 for ids in sequences)
        losses = []
        for ids in sequences:
            logits = model(torch.tensor([ids[:-1]])).logits[0]
            loss = torch.nn.functional.cross_entropy(logits, torch.tensor(ids[1:]),
                                                     reduction="none")
            (loss.sum() / rows).backward()
            losses += loss.tolist()
        written = {key: value for key, value in config.to_dict().items()
                   if key in F.BASE or key in settings or key in (
                       "model_type", "tie_word_embeddings", "head_dim", "rope_theta",
                       "rms_norm_eps", "hidden_act", "attention_bias", "sliding_window",
                       "no_rope_layers", "layer_types")}
        gradients = {parameter.removeprefix("model."): sampled(of.grad)
                     for parameter, of in model.named_parameters()}
        out[name] = dict(config=written, sequences=sequences,
                         losses=[float(f"{x:.8g}") for x in losses], gradients=gradients)
    print(json.dumps(out, separators=(",", ":")))


if __name__ == "__main__":
    main()
