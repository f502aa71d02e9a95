// The command line of gpt-train, and the learning rate over a run's steps.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/cli/cli.h"
#include "gpt/families/config.h"
#include "gpt/train/training.h"
#include "kernels/comm/rendezvous_options.h"
#include "kernels/runtime/backend.h"

namespace hark::gpt {

// The shape of a new model.
struct ShapeOptions {
    std::string size;  // "124M", or these four:
    int64_t layers = 0, width = 0, heads = 0, vocab_size = 0;
    int64_t context = 0;  // positions; 0: the size's own, or the sequence length

    void flags(Flags& flags);
    bool given() const {
        return !size.empty() || layers + width + heads + context + vocab_size > 0;
    }
    // Throws UsageError for an unknown size, or parts that contradict each other.
    void check(int64_t length) const;
    // GPT-2's shapes (Radford et al. 2019, table 2) and GPT-3's small ones (Brown et al. 2020,
    // table 2.1). Throws Error if a part of the shape is missing.
    DecoderConfig config(int64_t n_vocab, int64_t length) const;
};

struct OptimizerOptions {
    std::string optimizer = "adamw";
    double learning_rate = 6e-4, final_fraction = 0.1, muon_momentum = 0.95;
    std::string schedule = "cosine";
    int64_t warmup = 0;
    double beta1 = 0.9, beta2 = 0.95, epsilon = 1e-8, weight_decay = 0.1, clip = 1.0,
           skip_outliers = 0;

    void flags(Flags& flags);
    // The learning rate of a step, from 1 on, of `steps`: a linear rise over `warmup` steps; then
    // cosine or linear down to final_fraction of it; constant; or wsd, constant with a fall by
    // 1 - sqrt over the last fifth (Hägele et al. 2024, section 3).
    double rate_of(int64_t step, int64_t steps) const;
};

struct TrainOptions {
    std::vector<std::string> train, val;
    std::string output_dir, model, tokenizer;
    ShapeOptions shape;
    OptimizerOptions optimizer;
    int64_t steps = 0, batch = 8, accumulate = 1, length = 0, gpus = 1;
    int64_t tensor_parallel = 1;
    RendezvousOptions rendezvous;
    int ranks = 1;  // not a flag: processes that compute different sequences of a step
    int64_t seed = 0, val_every = 250, val_tokens = 1 << 20, save_every = 1000, keep = 2;
    std::string recompute = "none";
    int64_t sample_every = 0, sample_tokens = 100;
    ComputeOptions compute;
    std::string sample_prompt, hellaswag, tensorboard, export_llmc, export_model,
        export_type = "f32";
    bool mask_documents = false, dry_run = false;

    void flags(Flags& flags);
    void add_report_flags(Flags& flags);
    void check() const;  // throws UsageError
    Recompute recompute_level() const;
    // The type of the matrices in products: bf16 on a GPU, f32 on the CPU, or as --dtype says.
    Dtype matrices(Device device) const;
    // Whether --model is a file: llm.c's .bin or a .gguf.
    bool from_file() const { return model.ends_with(".bin") || model.ends_with(".gguf"); }
    int64_t sequences_per_step() const { return batch * accumulate * ranks; }
    bool is_synthetic() const;  // --train synthetic
    // Further options that must be equal on all ranks, as text.
    std::string schedule_of_ranks() const;
    // Options that must be equal when a run is resumed, as text.
    std::string identity(Dtype matrices) const;
};

}  // namespace hark::gpt
