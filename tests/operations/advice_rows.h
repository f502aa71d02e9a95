// What has been measured: rows of docs/performance.md and docs/kernels/log/performance.md, whose
// Sources have one numbering, [n].
#pragma once

#include <cstdint>

namespace hark::advice {

// What a row has: milliseconds of a stage, or a speed: times real time, or tokens/s of all texts.
enum class Figure { encoder, step, window, speed, prompt_speed, step_speed };
constexpr const char* kFigures[] = {"encoder, ms", "step, ms",         "window, ms",
                                    "speed",       "prompt, tokens/s", "step, tokens/s"};
inline const char* name_of(Figure figure) { return kFigures[static_cast<int>(figure)]; }

struct WhisperRow {
    const char* gpu;
    const char* model;
    const char* type;
    int64_t windows;
    Figure figure;
    double measured;
    const char* source;  // [n] of docs/performance.md
};

constexpr WhisperRow kWhisperRows[] = {
    {"h200", "large-v3", "auto", 1, Figure::encoder, 6.75, "[60]"},
    {"h200", "large-v3", "auto", 1, Figure::step, 0.944, "[60]"},
    {"h200", "large-v3", "auto", 1, Figure::window, 101.9, "[60]"},
    {"h200", "large-v3", "auto", 32, Figure::encoder, 5.12, "[60]"},
    {"h200", "large-v3", "auto", 32, Figure::step, 4.02, "[60]"},
    {"h200", "large-v3", "auto", 32, Figure::speed, 1680, "[60]"},
    {"h200", "large-v3", "auto", 96, Figure::encoder, 4.54, "[6]"},
    {"h200", "large-v3", "auto", 96, Figure::step, 7.25, "[6]"},
    {"h200", "large-v3", "auto", 96, Figure::speed, 2462, "[6]"},
    {"h200", "large-v3", "auto", 128, Figure::encoder, 4.58, "[60]"},
    {"h200", "large-v3", "auto", 128, Figure::step, 8.07, "[60]"},
    {"h200", "large-v3", "auto", 128, Figure::speed, 2719, "[60]"},
    {"h200", "large-v3", "fp8", 128, Figure::encoder, 3.99, "[60]"},
    {"h200", "large-v3", "fp8", 128, Figure::step, 8.55, "[60]"},
    {"h200", "large-v3", "fp8", 128, Figure::speed, 2817, "[60]"},
    {"h200", "turbo", "auto", 1, Figure::encoder, 5.90, "[60]"},
    {"h200", "turbo", "auto", 1, Figure::step, 0.173, "[60]"},
    {"h200", "turbo", "auto", 1, Figure::window, 23.0, "[60]"},
    {"h200", "turbo", "auto", 128, Figure::encoder, 4.61, "[6]"},
    {"h200", "turbo", "auto", 128, Figure::step, 1.17, "[6]"},
    {"h200", "turbo", "auto", 128, Figure::speed, 5514, "[47]"},
    {"h200", "tiny", "auto", 1, Figure::step, 0.092, "[58]"},
    {"h200", "tiny", "auto", 1, Figure::window, 10.2, "[58]"},
    {"h200", "tiny", "auto", 128, Figure::speed, 43984, "[45]"},
    {"h100", "large-v3", "auto", 128, Figure::speed, 2442, "[1]"},
    {"h100", "large-v3", "auto", 1, Figure::window, 127.5, "[1]"},
    {"h100", "turbo", "auto", 128, Figure::speed, 5316, "[46]"},
    {"h100", "tiny", "auto", 128, Figure::speed, 43877, "[46]"},
};

struct GptRow {
    const char* gpu;
    const char* shape;
    const char* type;
    int64_t texts, prompt;
    Figure figure;
    double measured;
    const char* source;
};

constexpr GptRow kGptRows[] = {
    {"h200", "gpt2-124m", "auto", 1, 16, Figure::step_speed, 6494, "[59]"},
    {"h200", "gpt2-1558m", "auto", 1, 16, Figure::step_speed, 731, "[59]"},
    {"h200", "llama-3.1-8b", "auto", 1, 128, Figure::step_speed, 235, "[59]"},
    {"h200", "llama-3.1-8b", "auto", 1, 128, Figure::prompt_speed, 21564, "[59]"},
    {"h200", "llama-3.1-8b", "auto", 1, 2048, Figure::prompt_speed, 44499, "[59]"},
    {"h200", "llama-3.2-1b", "auto", 1, 128, Figure::step_speed, 1294, "[59]"},
    {"h200", "llama-3.2-1b", "auto", 1, 128, Figure::prompt_speed, 83156, "[59]"},
    {"h200", "llama-3.2-1b", "auto", 1, 16000, Figure::step_speed, 911, "[59]"},
    {"h200", "llama-3.2-1b", "auto", 1, 16000, Figure::prompt_speed, 146984, "[59]"},
    {"h200", "qwen2.5-0.5b", "auto", 1, 128, Figure::step_speed, 1998, "[59]"},
    {"h200", "qwen2.5-0.5b", "auto", 1, 128, Figure::prompt_speed, 60651, "[59]"},
    {"h200", "llama-3.1-8b", "fp8", 1, 128, Figure::step_speed, 341, "[59]"},
    {"h200", "llama-3.1-8b", "fp8", 1, 128, Figure::prompt_speed, 26661, "[59]"},
    {"h200", "llama-3.1-8b", "q8_0", 1, 128, Figure::step_speed, 383, "[59]"},
    {"h200", "llama-3.1-8b", "q8_0", 1, 128, Figure::prompt_speed, 18662, "[59]"},
    {"h200", "llama-3.1-8b", "q4_0", 1, 128, Figure::step_speed, 490, "[59]"},
    {"h200", "llama-3.1-8b", "q4_0", 1, 128, Figure::prompt_speed, 19717, "[59]"},
    {"h200", "llama-3.1-8b", "q4_k_m", 1, 128, Figure::step_speed, 529, "[59]"},
    {"h200", "llama-3.1-8b", "q4_k_m", 1, 128, Figure::prompt_speed, 20824, "[59]"},
    {"h200", "llama-3.1-8b", "q4_k_m", 1, 2048, Figure::prompt_speed, 36440, "[59]"},
    {"h200", "llama-3.1-8b", "q4_k_m", 1, 2048, Figure::step_speed, 478, "[59]"},
    {"h200", "llama-3.2-1b", "q8_0", 1, 128, Figure::step_speed, 1883, "[59]"},
    {"h200", "llama-3.2-1b", "q8_0", 1, 128, Figure::prompt_speed, 69500, "[59]"},
    {"h200", "llama-3.2-1b", "q4_k_m", 1, 128, Figure::step_speed, 2002, "[59]"},
    {"h200", "llama-3.2-1b", "q4_k_m", 1, 128, Figure::prompt_speed, 71714, "[59]"},
    {"h200", "qwen2.5-0.5b", "q8_0", 1, 128, Figure::step_speed, 1807, "[59]"},
    {"h200", "qwen2.5-0.5b", "q8_0", 1, 128, Figure::prompt_speed, 65126, "[59]"},
    {"h200", "qwen2.5-0.5b", "q4_k_m", 1, 128, Figure::step_speed, 1784, "[59]"},
    {"h200", "qwen2.5-0.5b", "q4_k_m", 1, 128, Figure::prompt_speed, 64272, "[59]"},
    {"h200", "gpt-oss-20b", "auto", 1, 128, Figure::step_speed, 564, "[59]"},
    {"h200", "gpt-oss-20b", "auto", 1, 128, Figure::prompt_speed, 2739, "[59]"},
    {"h200", "qwen3-30b-a3b", "q4_k_m", 1, 128, Figure::step_speed, 503, "[51]"},
    {"h200", "llama-3.1-8b", "q4_k_m", 1, 256, Figure::prompt_speed, 25258, "[43]"},
    {"h200", "qwen3-30b-a3b", "q4_k_m", 1, 128, Figure::prompt_speed, 5505, "[43]"},
    {"h200", "llama-3.2-1b", "auto", 1, 1024, Figure::prompt_speed, 256400, "[38]"},
    {"h200", "llama-3.2-1b", "auto", 1, 131000, Figure::prompt_speed, 38050, "[38]"},
    {"h200", "llama-3.2-1b", "auto", 1, 131000, Figure::step_speed, 500, "[38]"},
    {"h200", "llama-3.1-8b", "auto", 16, 128, Figure::speed, 2690, "[48]"},
    {"h200", "llama-3.1-8b", "auto", 64, 128, Figure::step, 5.141, "[55]"},
    {"h200", "llama-3.1-8b", "auto", 64, 128, Figure::speed, 9316, "[55]"},
    {"h200", "llama-3.1-8b", "auto", 256, 128, Figure::step, 9.506, "[55]"},
    {"h200", "llama-3.1-8b", "auto", 256, 128, Figure::speed, 15588, "[55]"},
    {"h200", "qwen2.5-0.5b", "auto", 256, 128, Figure::step, 1.390, "[55]"},
    {"h200", "qwen2.5-0.5b", "auto", 256, 128, Figure::speed, 118422, "[55]"},
    {"h200", "llama-3.1-8b", "fp8", 64, 128, Figure::step, 3.94, "[56]"},
    {"h200", "llama-3.1-8b", "fp8", 256, 128, Figure::step, 7.08, "[56]"},
    {"h200", "llama-3.1-8b", "fp8", 256, 128, Figure::speed, 21983, "[56]"},
    {"h200", "llama-3.1-8b", "q4_k_m", 16, 128, Figure::step, 3.90, "[43]"},
    {"h200", "llama-3.1-8b", "q4_k_m", 64, 128, Figure::step, 5.27, "[43]"},
    {"h200", "llama-3.1-8b", "q4_k_m", 128, 128, Figure::step, 7.46, "[43]"},
    {"h200", "llama-3.1-8b", "q4_k_m", 256, 128, Figure::step, 13.30, "[43]"},
    {"h200", "llama-3.1-8b", "q4_k_m", 64, 128, Figure::speed, 8714, "[43]"},
    {"h200", "llama-3.1-8b", "q4_k_m", 256, 128, Figure::speed, 11856, "[43]"},
    {"h200", "llama-3.1-8b", "q8_0", 64, 128, Figure::step, 6.26, "[43]"},
    {"h200", "llama-3.1-8b", "q8_0", 64, 128, Figure::speed, 7677, "[43]"},
    // Of older kernels; nothing newer was measured with an H100.
    {"h100", "llama-3.1-8b", "q8_0", 1, 2048, Figure::prompt_speed, 34308, "[29]"},
    {"h100", "gpt-oss-20b", "auto", 1, 1024, Figure::prompt_speed, 14164, "[31]"},
    {"h100", "qwen3-30b-a3b", "q4_k_m", 1, 1024, Figure::prompt_speed, 12266, "[31]"},
    {"h100", "qwen3-30b-a3b", "auto", 1, 1024, Figure::prompt_speed, 23745, "[31]"},
    {"h100", "deepseek-v2-lite", "auto", 1, 128, Figure::prompt_speed, 4328, "[31]"},
    {"h100", "deepseek-v2-lite", "auto", 1, 128, Figure::step_speed, 206, "[31]"},
    {"h100", "deepseek-v2-lite", "q4_k_m", 1, 1024, Figure::prompt_speed, 2913, "[31]"},
    {"h100", "deepseek-v2-lite", "q4_k_m", 1, 1024, Figure::step_speed, 334, "[31]"},
    {"h100", "qwen3-30b-a3b", "auto", 1, 1024, Figure::step_speed, 162, "[31]"},
    {"h100", "llama-3.1-8b", "auto", 1, 128, Figure::step_speed, 166, "[34]"},
    {"h100", "llama-3.2-1b", "auto", 1, 128, Figure::step_speed, 925, "[34]"},
    {"h100", "llama-3.2-1b", "auto", 1, 700, Figure::step_speed, 903, "[33]"},
    {"h100", "llama-3.2-1b", "auto", 1, 8000, Figure::step_speed, 778, "[33]"},
    {"h100", "llama-3.2-1b", "auto", 1, 16000, Figure::step_speed, 683, "[33]"},
    {"h100", "llama-3.1-8b", "auto", 64, 128, Figure::step, 7.25, "[33]"},
    {"h100", "llama-3.1-8b", "auto", 256, 128, Figure::step, 10.84, "[33]"},
    {"h100", "llama-3.1-8b", "auto", 64, 896, Figure::step, 9.50, "[33]"},
    {"h100", "llama-3.2-1b", "auto", 64, 128, Figure::step, 1.55, "[33]"},
    {"h100", "llama-3.2-1b", "auto", 128, 128, Figure::step, 1.85, "[33]"},
    {"h100", "qwen2.5-0.5b", "auto", 256, 128, Figure::step, 1.73, "[33]"},
};

// GB/s of the Xeon of [8]: its L3 holds a small decoder; what is larger is read beyond it.
constexpr double kInL3 = 69, kBeyondL3 = 39;

struct CpuRow {
    const char* model;
    const char* type;
    int64_t windows;
    Figure figure;
    double measured, gb_per_s;
};

// docs/performance.md [8]. A token in a batch of 8 is an eighth of the step.
constexpr CpuRow kCpuRows[] = {
    {"tiny", "f32", 1, Figure::encoder, 100, kInL3},
    {"tiny", "auto", 1, Figure::encoder, 99, kInL3},
    {"tiny", "bf16", 1, Figure::encoder, 59, kInL3},
    {"tiny", "int8", 1, Figure::encoder, 55, kInL3},
    {"tiny", "f32", 1, Figure::step, 2.1, kInL3},
    {"tiny", "auto", 1, Figure::step, 1.3, kInL3},
    {"tiny", "bf16", 1, Figure::step, 1.19, kInL3},
    {"tiny", "int8", 1, Figure::step, 0.79, kInL3},
    {"tiny", "f32", 8, Figure::step, 8 * 0.75, kInL3},
    {"tiny", "auto", 8, Figure::step, 8 * 0.60, kInL3},
    {"tiny", "bf16", 8, Figure::step, 8 * 0.44, kInL3},
    {"tiny", "int8", 8, Figure::step, 8 * 0.39, kInL3},
    {"base", "f32", 1, Figure::encoder, 238, kInL3},
    {"base", "auto", 1, Figure::encoder, 254, kInL3},
    {"base", "bf16", 1, Figure::encoder, 135, kInL3},
    {"base", "int8", 1, Figure::encoder, 119, kInL3},
    {"base", "f32", 1, Figure::step, 4.0, kInL3},
    {"base", "auto", 1, Figure::step, 2.5, kInL3},
    {"base", "bf16", 1, Figure::step, 2.2, kInL3},
    {"base", "int8", 1, Figure::step, 1.57, kInL3},
    {"base", "f32", 8, Figure::step, 8 * 2.06, kBeyondL3},
    {"base", "auto", 8, Figure::step, 8 * 1.66, kBeyondL3},
    {"base", "bf16", 8, Figure::step, 8 * 1.29, kBeyondL3},
    {"base", "int8", 8, Figure::step, 8 * 1.07, kBeyondL3},
};

struct FractionRow {
    const char* shape;
    const char* type;
    double fraction;
};

// docs/performance.md [27]: which part of the bandwidth a token reaches. That run's bandwidth is
// not stored, so predictions are compared as parts of it too.
constexpr FractionRow kFractions[] = {
    {"gpt2-124m", "auto", 0.89},      {"gpt2-124m", "bf16", 0.82},
    {"gpt2-124m", "q8_0", 0.88},      {"gpt2-124m", "q4_0", 0.58},
    {"gpt2-124m", "q4_k_m", 0.57},    {"llama-160m", "auto", 0.77},
    {"llama-160m", "bf16", 0.93},     {"llama-160m", "q8_0", 0.91},
    {"llama-160m", "q4_0", 0.57},     {"llama-160m", "q4_k_m", 0.65},
    {"qwen2.5-0.5b", "auto", 0.81},   {"qwen2.5-0.5b", "bf16", 0.92},
    {"qwen2.5-0.5b", "q8_0", 0.91},   {"qwen2.5-0.5b", "q4_0", 0.65},
    {"qwen2.5-0.5b", "q4_k_m", 0.59}, {"llama-3.2-1b", "auto", 0.89},
    {"llama-3.2-1b", "q8_0", 0.99},   {"llama-3.2-1b", "q4_0", 0.84},
    {"llama-3.2-1b", "q4_k_m", 0.46}};

}  // namespace hark::advice
