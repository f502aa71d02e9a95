"""Silero VAD's probabilities of recordings made by rule (recordings.py), for silero_test.

    pip install numpy torch safetensors
    python3 tests/golden/silero.py DATA > tests/golden/silero.json

DATA is src/silero_vad/data of github.com/snakers4/silero-vad, version 6.2: `jit` are the
probabilities of silero_vad.jit itself, which is what whisper.cpp's ggml file holds; `safetensors`
those of silero_vad_16k.safetensors, whose weights are of another training, through the same steps
in PyTorch. The script stops where these steps with the jit file's weights do not give its
probabilities.
"""

import json
import pathlib
import sys

import numpy as np
import recordings
import torch
from safetensors.torch import load_file
from torch.nn import functional as F

CASES = (("speech", 3, 12), ("drowned", 5, 6), ("chords", 2, 4.321), ("silence", 1, 1))
NAMES = {
    "stft_conv.weight": "stft.forward_basis_buffer",
    "lstm_cell.weight_ih": "decoder.rnn.weight_ih",
    "lstm_cell.weight_hh": "decoder.rnn.weight_hh",
    "lstm_cell.bias_ih": "decoder.rnn.bias_ih",
    "lstm_cell.bias_hh": "decoder.rnn.bias_hh",
    "final_conv.weight": "decoder.decoder.2.weight",
    "final_conv.bias": "decoder.decoder.2.bias",
}
for layer in range(4):
    for part in ("weight", "bias"):
        NAMES[f"conv{layer + 1}.{part}"] = f"encoder.{layer}.reparam_conv.{part}"


def by_steps(w, windows):
    """The network of src/silero_vad/tinygrad_model.py over windows (n, 512) with 64 before each."""
    hidden = cell = torch.zeros(1, 128)
    context, found = torch.zeros(64), []
    for window in windows:
        x = F.pad(torch.cat([context, window])[None, None], (0, 64), mode="reflect")
        x = F.conv1d(x, w["stft_conv.weight"], stride=128)
        x = (x[:, :129] ** 2 + x[:, 129:] ** 2).sqrt()
        for layer, stride in ((1, 1), (2, 2), (3, 2), (4, 1)):
            weight, bias = w[f"conv{layer}.weight"], w[f"conv{layer}.bias"]
            x = F.relu(F.conv1d(x, weight, bias, stride=stride, padding=1))
        gates = F.linear(x[:, :, 0], w["lstm_cell.weight_ih"], w["lstm_cell.bias_ih"])
        gates += F.linear(hidden, w["lstm_cell.weight_hh"], w["lstm_cell.bias_hh"])
        i, f, g, o = gates.chunk(4, dim=1)
        cell = f.sigmoid() * cell + i.sigmoid() * g.tanh()
        hidden = o.sigmoid() * cell.tanh()
        x = F.conv1d(F.relu(hidden)[:, :, None], w["final_conv.weight"], w["final_conv.bias"])
        found.append(x.sigmoid().item())
        context = window[-64:]
    return found


def main() -> None:
    data = pathlib.Path(sys.argv[1])
    model = torch.jit.load(data / "silero_vad.jit")
    state = {name.removeprefix("_model."): w for name, w in model.state_dict().items()}
    own = {name: state[theirs] for name, theirs in NAMES.items()}
    other = load_file(data / "silero_vad_16k.safetensors")
    cases = []
    for kind, seed, seconds in CASES:
        samples = np.asarray(recordings.recording(kind, seed, seconds))
        scaled = torch.from_numpy(samples.astype(np.float32) / 32768)
        windows = F.pad(scaled, (0, -len(scaled) % 512)).split(512)
        model.reset_states()
        with torch.no_grad():
            found = [model(window[None], 16000).item() for window in windows]
            assert np.allclose(found, by_steps(own, windows), atol=1e-5)
            case = {"kind": kind, "seed": seed, "seconds": seconds}
            case["jit"] = [round(p, 6) for p in found]
            case["safetensors"] = [round(p, 6) for p in by_steps(other, windows)]
        cases.append(case)
    json.dump({"cases": cases}, sys.stdout, separators=(",", ":"))
    print()


if __name__ == "__main__":
    main()
