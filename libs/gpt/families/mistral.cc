// Mistral 7B, Nemo and Small: Llama with a window over the keys in the first version.
// Reference: transformers models/mistral/modeling_mistral.py. Its GGUF files are those of Llama.
#include "gpt/families/family.h"

namespace hark::gpt {
namespace {

constexpr int64_t kDefaultWindow = 4096, kDefaultKvHeads = 8;

DecoderConfig read_mistral(const ConfigReader& in) {
    DecoderConfig c = read_llama_like(in, "mistral", {.n_kv_head = kDefaultKvHeads});
    // null turns the window off; without the key there is one.
    const Key window{"sliding_window", nullptr};
    const int64_t keys = in.mentions(window) ? in.size_or(window, 1 << 28, 0) : kDefaultWindow;
    set_layers(c, keys, [](int64_t) { return true; });
    return c;
}

}  // namespace

extern const Family kMistral;
const Family kMistral = {.model_type = "mistral", .gguf = nullptr, .read = read_mistral};

}  // namespace hark::gpt
