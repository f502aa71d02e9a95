// What the measurements of language models on both devices share.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/cli/cli.h"
#include "gpt/decoder/model.h"
#include "gpt/engine/decode_stream.h"
#include "gpt/sampling/sampler.h"
#include "kernels/comm/communicator.h"

namespace hark::bench {

struct GptWork {
    std::string model, type, dtype;
    int64_t prompt = 0;    // tokens before those that are timed
    int64_t tokens = 0;    // that are generated
    int64_t left_out = 0;  // of these, the first ones, which are not timed
    int64_t runs = 0;
    std::string kv_dtype = "auto";
    bool batch_invariant = false;
    int64_t gpus = 1;  // that share the model

    // --model --type --dtype --kv-dtype --batch-invariant --gpus
    void model_flags(Flags& flags);
};

// Greedy, and the draws of gpt-generate without flags.
struct NamedSampler {
    const char* name;
    gpt::SamplerOptions options;
};
std::vector<NamedSampler> gpt_samplers();

// A published shape with random weights in work.type, or the model in a file or folder; of several
// ranks this one's slice.
gpt::Model bench_model(const GptWork& work, Context& ctx, Communicator& ranks = no_other_ranks());
// Calls use(ctx, ranks) in each of --gpus processes. Only the first one's stdout is this one's.
void on_gpus(const GptWork& work, Console& console,
             const std::function<void(Context&, Communicator&)>& use);
// --type: a file's types, and mxfp4.
std::vector<std::string> bench_types();
// What its rows say of the type: work.type is that of a shape.
std::string type_label(const GptWork& work);

// What a step reads on the average: all weights but tables of which it takes one row, and the keys
// and values.
double gpt_token_bytes(const gpt::Model& model, const GptWork& work);

// Medians over the runs: the prompt up to its first token, and a later token.
struct GptTimes {
    double prompt_ms = 0, token_ms = 0;
};
GptTimes time_gpt(gpt::DecodeStream& stream, const GptWork& work, int64_t vocabulary);

// Prints the rows of `bench gpt --device cuda`.
void gpt_on_gpu(const GptWork& work, Context& ctx, Communicator& ranks);

}  // namespace hark::bench
