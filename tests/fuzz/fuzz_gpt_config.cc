// GPT-2's config.json.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "core/error.h"
#include "fuzz/seeds.h"
#include "gpt/families/config.h"

using namespace hark;

std::vector<std::string> fuzz::fuzz_seeds() {
    return {R"({"model_type":"gpt2","vocab_size":4096,"n_positions":512,"n_embd":256,"n_layer":8,)"
            R"("n_head":4,"n_inner":null,"layer_norm_epsilon":1e-05,"eos_token_id":4095,)"
            R"("activation_function":"gelu_new","tie_word_embeddings":true})",
            R"({"model_type":"gpt2","vocab_size":1,"n_positions":1,"n_embd":1,"n_layer":1,)"
            R"("n_head":1,"n_inner":7,"eos_token_id":[0,0],"activation_function":"gelu",)"
            R"("scale_attn_weights":true,"scale_attn_by_inverse_layer_idx":false})"};
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    try {
        const gpt::DecoderConfig config =
            gpt::parse_config({reinterpret_cast<const char*>(data), size}, "C");
        for (int64_t n : {config.n_vocab, config.n_positions, config.n_embd, config.n_layer,
                          config.n_head, config.n_inner})
            if (n < 1) std::abort();
        for (int32_t id : config.eos_token_ids)
            if (id < 0 || id >= config.n_vocab) std::abort();
        if (config.n_embd % config.n_head != 0) std::abort();
    } catch (const Error&) {
    }
    return 0;
}
