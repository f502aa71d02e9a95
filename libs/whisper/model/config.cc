#include "whisper/model/config.h"

#include <algorithm>
#include <map>

#include "core/error.h"
#include "core/files/files.h"
#include "core/json/json.h"
#include "whisper/model/alignment_heads.h"

namespace hark::whisper {
namespace {

using nlohmann::json;

struct Size {
    const char* openai;
    const char* hugging_face;
    int64_t Config::*value;
    int64_t max;
};

constexpr Size kSizes[] = {
    {"n_audio_state", "d_model", &Config::n_audio_state, 16384},
    {"n_text_state", "d_model", &Config::n_text_state, 16384},
    {"n_mels", "num_mel_bins", &Config::n_mels, 256},
    {"n_audio_ctx", "max_source_positions", &Config::n_audio_ctx, kWindowFrames / 2},
    {"n_audio_head", "encoder_attention_heads", &Config::n_audio_head, 1024},
    {"n_audio_layer", "encoder_layers", &Config::n_audio_layer, 1024},
    {"n_audio_mlp", "encoder_ffn_dim", &Config::n_audio_mlp, 65536},
    {"n_vocab", "vocab_size", &Config::n_vocab, 1 << 20},
    {"n_text_ctx", "max_target_positions", &Config::n_text_ctx, kMaxTextContext},
    {"n_text_head", "decoder_attention_heads", &Config::n_text_head, 1024},
    {"n_text_layer", "decoder_layers", &Config::n_text_layer, 1024},
    {"n_text_mlp", "decoder_ffn_dim", &Config::n_text_mlp, 65536},
};

int64_t whole_number(const json& root, const char* key, int64_t max, const std::string& file) {
    require(root.contains(key), file, ": expected '", key, "', found none");
    const json& value = root[key];
    require(value.is_number_integer() && value.get<int64_t>() > 0 && value.get<int64_t>() <= max,
            file, ": '", key, "': expected a whole number from 1 to ", max, ", found ",
            json_text(value));
    return value.get<int64_t>();
}

void check_heads(int64_t channels, int64_t heads, const std::string& where) {
    require(channels % heads == 0 && channels / heads % 8 == 0, where, ": ", heads,
            " attention heads do not divide ", channels, " channels into multiples of 8");
}

// Checks for "whisper", or in older files without model_type for a Whisper class.
void check_type(const json& root, const std::string& file) {
    const json type = root.value("model_type", json());
    const json classes = root.value("architectures", json());
    if (type.is_null() && classes.is_array())
        for (const json& name : classes)
            if (name.is_string() && name.get<std::string>().starts_with("Whisper")) return;
    const bool is_whisper = type.is_string() && type.get<std::string>() == "whisper";
    require(is_whisper, file, ": expected model_type \"whisper\", found ", json_text(type));
}

}  // namespace

Config load_config(const std::filesystem::path& directory) {
    const std::filesystem::path path = directory / "config.json";
    Config config = parse_config(read_file(path, size_t{1} << 20), path.string());
    const std::filesystem::path generation = directory / "generation_config.json";
    std::error_code failed;
    if (std::filesystem::exists(generation, failed))
        config.alignment_heads = parse_alignment_heads(read_file(generation, size_t{1} << 22),
                                                       config, generation.string());
    return config;
}

Config parse_config(const std::string& text, const std::string& file) {
    const json root = parse_json(text, file);
    require(root.is_object(), file, ": expected a JSON object");
    check_type(root, file);
    Config config;
    config.n_audio_state = whole_number(root, "d_model", 16384, file);
    config.n_audio_ctx = kWindowFrames / 2;
    config.n_text_ctx = kMaxTextContext;
    config.n_audio_mlp = config.n_text_mlp = 4 * config.n_audio_state;
    for (const Size& size : kSizes)
        if (config.*size.value == 0 || root.contains(size.hugging_face))
            config.*size.value = whole_number(root, size.hugging_face, size.max, file);
    check_config(config, file);
    config.alignment_heads = default_alignment_heads(config);
    return config;
}

Config config_of_sizes(const std::map<std::string, int64_t>& sizes, const std::string& where) {
    Config config;
    for (const Size& size : kSizes) {
        if (size.value == &Config::n_audio_mlp || size.value == &Config::n_text_mlp) continue;
        const auto found = sizes.find(size.openai);
        require(found != sizes.end(), where, ": expected a size '", size.openai, "', found none");
        config.*size.value = found->second;
    }
    const auto mlp = [](int64_t state) { return 4 * std::clamp<int64_t>(state, 0, 1 << 20); };
    config.n_audio_mlp = mlp(config.n_audio_state);
    config.n_text_mlp = mlp(config.n_text_state);
    check_config(config, where);
    config.alignment_heads = default_alignment_heads(config);
    return config;
}

void check_config(const Config& config, const std::string& where) {
    for (const Size& size : kSizes)
        require(config.*size.value > 0 && config.*size.value <= size.max, where, ": ", size.openai,
                ": expected from 1 to ", size.max, ", found ", config.*size.value);
    require(config.n_audio_ctx * 2 == kWindowFrames, where, ": n_audio_ctx: expected ",
            kWindowFrames / 2, ", found ", config.n_audio_ctx);
    require(config.n_text_ctx >= 16, where, ": n_text_ctx: expected at least 16, found ",
            config.n_text_ctx);
    require(config.n_audio_state == config.n_text_state, where, ": expected as many channels of ",
            "text as of audio, ", config.n_audio_state, ", found ", config.n_text_state);
    check_heads(config.n_audio_state, config.n_audio_head, where);
    check_heads(config.n_text_state, config.n_text_head, where);
}

Config official_config(const std::string& size) {
    struct Shape {
        int64_t state, heads, audio_layers, text_layers, mels, vocab;
    };
    // Source: Radford et al. 2022, table 1; vocabularies and mels as published.
    static const std::map<std::string, Shape> kShapes = {
        {"tiny", {384, 6, 4, 4, 80, 51865}},         {"tiny.en", {384, 6, 4, 4, 80, 51864}},
        {"base", {512, 8, 6, 6, 80, 51865}},         {"base.en", {512, 8, 6, 6, 80, 51864}},
        {"small", {768, 12, 12, 12, 80, 51865}},     {"small.en", {768, 12, 12, 12, 80, 51864}},
        {"medium", {1024, 16, 24, 24, 80, 51865}},   {"medium.en", {1024, 16, 24, 24, 80, 51864}},
        {"large-v2", {1280, 20, 32, 32, 80, 51865}}, {"large-v3", {1280, 20, 32, 32, 128, 51866}},
        {"turbo", {1280, 20, 32, 4, 128, 51866}}};
    const auto found = kShapes.find(size);
    require(
        found != kShapes.end(), "no official size '", size,
        "': expected tiny, base, small, medium (each also with .en), large-v2, large-v3, turbo");
    const Shape& s = found->second;
    Config config = {s.mels,          1500,    s.state, s.heads,       s.audio_layers, s.vocab,
                     kMaxTextContext, s.state, s.heads, s.text_layers, 4 * s.state,    4 * s.state};
    config.alignment_heads = default_alignment_heads(config);
    return config;
}

}  // namespace hark::whisper
