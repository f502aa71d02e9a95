#include "whisper/config.h"

#include <map>

#include "core/error.h"
#include "core/files.h"
#include "core/json.h"
#include "whisper/alignment_heads.h"

namespace hark::whisper {
namespace {

using nlohmann::json;

int64_t positive(const json& root, const char* key, int64_t max, const std::string& file) {
    require(root.contains(key), file, ": expected '", key, "', found none");
    const json& value = root[key];
    require(value.is_number_integer() && value.get<int64_t>() > 0 && value.get<int64_t>() <= max,
            file, ": '", key, "': expected a whole number from 1 to ", max, ", found ",
            value.dump());
    return value.get<int64_t>();
}

void check_heads(int64_t channels, int64_t heads, const std::string& file) {
    require(channels % heads == 0 && channels / heads % 8 == 0, file, ": ", heads,
            " attention heads do not divide ", channels, " channels into multiples of 8");
}

// What decoding takes for granted.
void check_shape(const Config& config, const std::string& file) {
    require(config.n_audio_ctx * 2 == kWindowFrames, file, ": positions of the encoder: expected ",
            kWindowFrames / 2, ", found ", config.n_audio_ctx);
    require(config.n_text_ctx >= 16, file,
            ": positions of the decoder: expected at least 16, found ", config.n_text_ctx);
    check_heads(config.n_audio_state, config.n_audio_head, file);
    check_heads(config.n_text_state, config.n_text_head, file);
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
    const json type = root.value("model_type", json());
    require(type == "whisper", file, ": expected model_type \"whisper\", found ", type.dump());
    Config config;
    config.n_mels = positive(root, "num_mel_bins", 256, file);
    config.n_audio_ctx = positive(root, "max_source_positions", kWindowFrames / 2, file);
    config.n_audio_state = positive(root, "d_model", 16384, file);
    config.n_audio_head = positive(root, "encoder_attention_heads", 1024, file);
    config.n_audio_layer = positive(root, "encoder_layers", 1024, file);
    config.n_audio_mlp = positive(root, "encoder_ffn_dim", 65536, file);
    config.n_vocab = positive(root, "vocab_size", 1 << 20, file);
    config.n_text_ctx = positive(root, "max_target_positions", kMaxTextContext, file);
    config.n_text_state = config.n_audio_state;
    config.n_text_head = positive(root, "decoder_attention_heads", 1024, file);
    config.n_text_layer = positive(root, "decoder_layers", 1024, file);
    config.n_text_mlp = positive(root, "decoder_ffn_dim", 65536, file);
    check_shape(config, file);
    config.alignment_heads = default_alignment_heads(config);
    return config;
}

Config config_of_sizes(const std::map<std::string, int64_t>& sizes, const std::string& where) {
    Config config;
    const auto take = [&](int64_t& size, const char* name, int64_t max) {
        const auto found = sizes.find(name);
        require(found != sizes.end(), where, ": expected '", name, "', found none");
        require(found->second > 0 && found->second <= max, where, ": '", name,
                "': expected a whole number from 1 to ", max, ", found ", found->second);
        size = found->second;
    };
    take(config.n_mels, "n_mels", 256);
    take(config.n_audio_ctx, "n_audio_ctx", kWindowFrames / 2);
    take(config.n_audio_state, "n_audio_state", 16384);
    take(config.n_audio_head, "n_audio_head", 1024);
    take(config.n_audio_layer, "n_audio_layer", 1024);
    take(config.n_vocab, "n_vocab", 1 << 20);
    take(config.n_text_ctx, "n_text_ctx", kMaxTextContext);
    take(config.n_text_state, "n_text_state", 16384);
    take(config.n_text_head, "n_text_head", 1024);
    take(config.n_text_layer, "n_text_layer", 1024);
    require(config.n_audio_state == config.n_text_state, where,
            ": expected an encoder and a decoder of as many channels, found ", config.n_audio_state,
            " and ", config.n_text_state);
    config.n_audio_mlp = 4 * config.n_audio_state;
    config.n_text_mlp = 4 * config.n_text_state;
    check_shape(config, where);
    config.alignment_heads = default_alignment_heads(config);
    return config;
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
