// How a training run goes: the flags of gpt-train, and the learning rate over its steps.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/cli.h"
#include "gpt/config.h"
#include "gpt/training.h"
#include "kernels/backend.h"

namespace hark::gpt {

// The shape of a model that is begun anew.
struct ShapeOptions {
    std::string size;  // "124M"; or each by itself:
    int64_t layers = 0, width = 0, heads = 0, vocab_size = 0;
    int64_t context = 0;  // positions; 0: the size's own, and the sequence length

    void flags(Flags& flags);
    bool given() const {
        return !size.empty() || layers + width + heads + context + vocab_size > 0;
    }
    // GPT-2's shapes (Radford et al. 2019, table 2) and GPT-3's small ones (Brown et al. 2020,
    // table 2.1). Throws UsageError for a size that is none of them, or a shape with a part left
    // out.
    Config config(int64_t n_vocab, int64_t length) const;
};

struct OptimizerOptions {
    std::string optimizer = "adamw";
    double rate = 6e-4, final_fraction = 0.1, muon_momentum = 0.95;
    std::string schedule = "cosine";
    int64_t warmup = 0;
    double beta1 = 0.9, beta2 = 0.95, epsilon = 1e-8, weight_decay = 0.1, clip = 1.0,
           skip_outliers = 0;

    void flags(Flags& flags);
    // The learning rate of a step, from 1 on, of `steps`: a linear rise over `warmup` steps; then
    // cosine or linear down to rate * final_fraction; constant; or wsd, constant with a fall by
    // 1 - sqrt over the last fifth (Hägele et al. 2024, section 3).
    double rate_of(int64_t step, int64_t steps) const;
};

struct TrainOptions {
    std::vector<std::string> train, val;
    std::string out, model, tokenizer;
    ShapeOptions shape;
    OptimizerOptions optimizer;
    int64_t steps = 0, batch = 8, accumulate = 1, length = 0, gpus = 1;
    int64_t tensor_parallel = 1;
    int ranks = 1;  // not a flag: how many parts a step's sequences are computed in side by side
    int64_t seed = 0, val_every = 250, val_tokens = 1 << 20, save_every = 1000, keep = 2;
    std::string recompute = "none";
    int64_t sample_every = 0, sample_tokens = 100;
    ComputeOptions compute;
    std::string sample_prompt, hellaswag, tensorboard, export_llmc, export_model,
        export_dtype = "f32";
    bool mask_documents = false;

    void flags(Flags& flags);
    void check() const;  // throws UsageError
    Recompute recompute_level() const;
    // The type of the matrices in products: bf16 on a GPU, f32 on the CPU, or as --dtype says.
    Dtype matrices(Device device) const;
    // Whether --model is a file: llm.c's .bin or a .gguf.
    bool from_file() const { return model.ends_with(".bin") || model.ends_with(".gguf"); }
    int64_t sequences_a_step() const { return batch * accumulate * ranks; }
    // What ranks must have alike beside that, so that they do the same at the same time, as text.
    std::string schedule_of_ranks() const;
    // What must be the same where a run goes on, as text.
    std::string identity(Dtype matrices) const;
};

// The parts of two lists "a 1, b 2" in which they differ; all, where their lengths do.
std::pair<std::string, std::string> differences(const std::string& a, const std::string& b);

}  // namespace hark::gpt
