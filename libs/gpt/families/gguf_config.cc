#include "gpt/families/gguf_config.h"

#include <cmath>

#include "core/error.h"

namespace hark::gpt {

GgufConfig::GgufConfig(const GgufFile& file)
    : ConfigReader(true), file_(file), architecture_(file.text("general.architecture")) {}

std::string GgufConfig::full(const Key& key) const { return concat(architecture_, ".", key.gguf); }

bool GgufConfig::has(const Key& key) const { return key.gguf && file_.has(full(key)); }

int64_t GgufConfig::integer(const Key& key, int64_t min, int64_t max) const {
    require(key.gguf, where(), ": no key for ", key.json);
    return file_.integer(full(key), min, max);
}

double GgufConfig::number(const Key& key) const {
    require(key.gguf, where(), ": no key for ", key.json);
    const double value = file_.number(full(key));
    require(std::isfinite(value), where(), ": key '", full(key), "': expected a number");
    return value;
}

bool GgufConfig::boolean(const Key& key) const { return file_.boolean(full(key)); }

std::string GgufConfig::text(const Key& key) const { return std::string(file_.text(full(key))); }

RopeSettings GgufConfig::rope(double otherwise, const char*) const {
    RopeSettings rope;
    rope.theta = number_or({nullptr, "rope.freq_base"}, otherwise);
    const Key type{nullptr, "rope.scaling.type"};
    if (has(type)) rope.type = text(type) == "none" ? "default" : text(type);
    rope.factor = number_or({nullptr, "rope.scaling.factor"}, 1);
    rope.original_length =
        size_or({nullptr, "rope.scaling.original_context_length"}, int64_t{1} << 40, 0);
    rope.attention_factor = number_or({nullptr, "rope.scaling.attn_factor"}, 0);
    rope.beta_fast = number_or({nullptr, "rope.scaling.yarn_beta_fast"}, 32);
    rope.beta_slow = number_or({nullptr, "rope.scaling.yarn_beta_slow"}, 1);
    require(rope.theta > 0 && rope.factor > 0, where(),
            ": expected a rope.freq_base and a factor above 0, found ", rope.theta, " and ",
            rope.factor);
    const auto values = [&](const char* name, std::vector<double>& to) {
        const auto found = file_.tensors().find(name);
        if (found == file_.tensors().end()) return;
        require(found->second.dtype == Dtype::f32 && found->second.rank == 1, where(), ": tensor '",
                name, "': expected f32 of one dimension, found ", found->second);
        const float* from = found->second.as<float>();
        to.assign(from, from + found->second.size());
        for (const double value : to)
            require(std::isfinite(value) && value > 0, where(), ": tensor '", name,
                    "': expected numbers above 0");
    };
    values("rope_freqs.weight", rope.divisors);
    values("rope_factors_short.weight", rope.short_factor);
    values("rope_factors_long.weight", rope.long_factor);
    if (!rope.long_factor.empty()) rope.type = "longrope";
    return rope;
}

// A single number there is a period, not the layers' types.
std::vector<std::string> GgufConfig::layer_types() const {
    std::vector<std::string> types;
    const std::string key = full({nullptr, "attention.sliding_window_pattern"});
    if (!file_.has_array(key)) return types;
    for (const bool slides : file_.booleans(key))
        types.emplace_back(slides ? "sliding_attention" : "full_attention");
    return types;
}

std::vector<int64_t> GgufConfig::integers(const Key& key) const {
    return has(key) ? file_.integers(full(key)) : std::vector<int64_t>{};
}

std::vector<int32_t> GgufConfig::eos_token_ids(int64_t n_vocab) const {
    std::vector<int32_t> ids;
    for (const char* key : {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id",
                            "tokenizer.ggml.eom_token_id"})
        if (file_.has(key)) ids.push_back(static_cast<int32_t>(file_.integer(key, 0, n_vocab - 1)));
    return ids;
}

int64_t GgufConfig::n_vocab() const {
    const auto table = file_.tensors().find("token_embd.weight");
    require(table != file_.tensors().end(), where(),
            ": expected a tensor 'token_embd.weight', found none");
    const int64_t rows = table->second.rows();
    require(rows > 0 && rows <= 1 << 24, where(), ": expected at most ", 1 << 24, " tokens, found ",
            rows);
    return rows;
}

}  // namespace hark::gpt
