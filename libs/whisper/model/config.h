// The shape of a Whisper model, from its directory's config.json.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace hark::whisper {

inline constexpr int64_t kWindowFrames = 3000;  // mel frames of a 30 s window, 10 ms each
inline constexpr int64_t kMaxTextContext = 448;
inline constexpr double kFramesPerSecond = 100;  // of mel
inline constexpr double kTimestampStep = 0.02;   // seconds

inline double seconds_of(int64_t frames) { return static_cast<double>(frames) / kFramesPerSecond; }

// A head of the decoder's cross-attention.
struct AlignmentHead {
    int32_t layer = 0, head = 0;
    auto operator<=>(const AlignmentHead&) const = default;
};

// Names as in openai/whisper's ModelDimensions.
struct Config {
    int64_t n_mels = 0;
    int64_t n_audio_ctx = 0;    // encoder positions: 1500
    int64_t n_audio_state = 0;  // channels
    int64_t n_audio_head = 0;
    int64_t n_audio_layer = 0;
    int64_t n_vocab = 0;
    int64_t n_text_ctx = 0;  // decoder positions: 448
    int64_t n_text_state = 0;
    int64_t n_text_head = 0;
    int64_t n_text_layer = 0;
    int64_t n_audio_mlp = 0;  // hidden channels of an encoder block's MLP
    int64_t n_text_mlp = 0;
    std::vector<AlignmentHead> alignment_heads;  // give words their times
};

// Reads DIR/config.json, and DIR/generation_config.json's alignment heads if it has any. Optional,
// with the published models' values: 1500 and 448 positions, MLPs of 4 times the channels. Throws
// Error naming file and key if one is missing, is out of range or is not a Whisper model's.
Config load_config(const std::filesystem::path& directory);
// Parses config.json's text alone; `where` names it in messages.
Config parse_config(const std::string& text, const std::string& where);

// The shape from openai-whisper's names ("n_mels" to "n_text_layer"), for files without a
// config.json. An MLP has four times the channels. Throws Error as check_config() does, or naming
// a missing size.
Config config_of_sizes(const std::map<std::string, int64_t>& sizes, const std::string& where);

// Throws Error that begins with `where` if a size is out of range or the heads do not divide the
// channels.
void check_config(const Config& config, const std::string& where);

// The official sizes (tiny, base, small, medium, large-v3, turbo, and .en twins), for benchmarks.
// Throws Error for another name.
Config official_config(const std::string& size);

}  // namespace hark::whisper
