// Silero VAD, version 5 and later, at 16 kHz, from its published weights.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "nn/weights.h"

namespace hark {

// The network. Source: snakers4/silero-vad, src/silero_vad/tinygrad_model.py.
struct SileroModel {
    static constexpr int64_t kStep = 512;    // samples per probability
    static constexpr int64_t kContext = 64;  // samples read before them
    static constexpr int64_t kHidden = 128;  // of the LSTM
    static constexpr int64_t kBins = 129;    // of the spectrum
    static constexpr int64_t kWindow = 256;  // samples of a spectrum
    static constexpr int64_t kSpectra = 4;   // per step, every 128 samples

    WeightStore memory;
    Matrix basis;                        // (2 * kBins, kWindow): cosines, then sines
    std::array<Matrix, 4> convolutions;  // kernel 3: 129 -> 128 -> 64 -> 64 -> 128
    std::array<Tensor, 4> biases;
    Matrix input, recurrent;            // (4 * kHidden, kHidden): gates i, f, g, o
    Tensor input_bias, recurrent_bias;  // (4 * kHidden)
    Matrix output;                      // (1, kHidden)
    Tensor output_bias;                 // (1)
};

// Reads silero_vad_16k.safetensors as snakers4/silero-vad publishes it, or the ggml file that
// whisper.cpp's convert-silero-vad-to-ggml.py makes. Throws Error naming the file if its
// format or architecture is another one, or a tensor is missing, twice in it, cut short, of another
// shape or type, or has a value that is not finite.
std::shared_ptr<const SileroModel> load_silero(const std::filesystem::path& path);

// Computes the probabilities of speech in one recording.
class Silero {
  public:
    explicit Silero(std::shared_ptr<const SileroModel> model);

    // Appends the probability of each 512 samples that are now complete. How the samples are cut
    // into pushes does not change a bit.
    void push(std::span<const float> samples, std::vector<float>& probabilities);
    // Ends the recording: a rest of samples is padded with zeros.
    void finish(std::vector<float>& probabilities);

  private:
    float step();
    void lstm(Tensor x);  // (1, kHidden), updates hidden_ and cell_

    std::shared_ptr<const SileroModel> model_;
    std::unique_ptr<Context> ctx_;
    std::vector<float> pending_;  // the context, then samples
    std::vector<float> hidden_, cell_;
};

}  // namespace hark
