// A prompt's keys and values: gpt-generate --prompt-cache and --from-cache.
#include "core/error.h"
#include "core/files/files.h"
#include "fuzz/memory_file.h"
#include "fuzz/target.h"
#include "gpt/decoder/model.h"
#include "gpt/engine/prompt_cache.h"
#include "gpt/engine/sequence.h"
#include "support/family_weights.h"

using namespace hark;
using namespace hark::fuzz;

namespace {

// A layer with all keys and one with a window.
const gpt::Model& tiny_model() {
    static const gpt::Model model = [] {
        const gpt::DecoderConfig config = gpt::parse_config(
            R"({"model_type":"gemma3_text","vocab_size":16,"max_position_embeddings":128,)"
            R"("hidden_size":8,"num_hidden_layers":2,"num_attention_heads":2,"head_dim":4,)"
            R"("num_key_value_heads":1,"intermediate_size":8,"sliding_window":4,)"
            R"("layer_types":["sliding_attention","full_attention"]})",
            "tiny");
        test::FamilyWeights weights(true);
        return gpt::read_model(weights, config, precision_of("f32"));
    }();
    return model;
}

}  // namespace

static std::vector<std::string> prompt_cache_seeds() {
    std::vector<std::string> seeds;
    for (const int64_t n : {1, 5, 100}) {
        Context ctx = make_cpu_context(1);
        gpt::Sequence sequence(ctx, tiny_model(), {.prefill_rows = 8});
        const auto logits =
            sequence.forward_to_host(ctx, std::vector<int32_t>(static_cast<size_t>(n), 3));
        const MemoryFile file(nullptr, 0);
        ByteWriter out(file.fd(), "seed");
        gpt::write_prompt_cache(ctx, sequence, logits, out);
        seeds.push_back(read_file(file.path()));
    }
    return seeds;
}

static int prompt_cache_input(const uint8_t* data, size_t size) {
    static Context ctx = make_cpu_context(1);
    static gpt::Sequence sequence(ctx, tiny_model(), {.prefill_rows = 8});
    const fuzz::MemoryFile input(data, size);
    sequence.clear();
    try {
        gpt::read_prompt_cache(ctx, sequence, input.path());
        // The keys and values that it promises are read.
        if (sequence.room() > 0) sequence.forward_to_host(ctx, std::vector<int32_t>{1});
    } catch (const Error&) {
    }
    return 0;
}

static const hark::fuzz::Target kPromptCache{"prompt_cache", prompt_cache_seeds,
                                             prompt_cache_input};
