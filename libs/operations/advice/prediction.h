// What a model takes on a machine: memory, and the time of each stage by batch and type.
#pragma once

#include <string>
#include <vector>

#include "operations/advice/shape.h"
#include "operations/advice/work.h"

namespace hark::advice {

// The work that is asked about.
struct Load {
    int64_t tokens_per_window = 100;  // Whisper: of 30 s
    int64_t prompt_tokens = 128;      // language models: of a text
    int64_t max_tokens = 0;
};

struct Stage {
    std::string name;  // "encoder", "step", "prompt"
    double ms = 0;     // of a window; of all rows at once; of a text
    std::vector<Term> terms;
};

// Windows of 30 s, or texts, that are computed at once.
struct Prediction {
    std::string type;
    int64_t batch = 0;
    std::vector<Stage> stages;
    double item_ms = 0;       // a window, or a text, of a batch
    double speed = 0;         // times real time, or generated tokens per second of all texts
    std::vector<Term> terms;  // of item_ms, the longest first
};

// `weights`: the shape's, for the machine's device.
Prediction predict(const Machine& machine, const Shape& shape, const Weights& weights,
                   int64_t batch, const Load& load);

// Of a window or a text.
struct Memory {
    std::string type;
    double weights = 0, fixed = 0;  // bytes; fixed: what the driver, libraries and kernels take
    double item = 0;                // of keys and values
    double many_items = 0;          // Whisper on a GPU: of each, above 32 windows
    int64_t most = 0;               // that fit; 0: not even one
};
Memory memory_of(const Machine& machine, const Shape& shape, const Weights& weights,
                 const Load& load);

// What the tools take without a flag, at most `most`.
int64_t default_batch(const Machine& machine, const Shape& shape, const Memory& memory);

// 1, 2, 4 ... up to what fits, the default too.
std::vector<int64_t> batches(const Machine& machine, const Shape& shape, const Memory& memory);

// Whether a batch keeps the encoder's output in place of keys and values.
bool absorbs(const Machine& machine, const whisper::Config& config, int64_t windows);

// The parts of each kind of model; prediction.cc chooses.
std::vector<Stage> whisper_stages(const Machine& machine, const whisper::Config& config,
                                  const Weights& weights, int64_t windows, const Load& load);
std::vector<Stage> gpt_stages(const Machine& machine, const gpt::DecoderConfig& config,
                              const Weights& weights, int64_t texts, const Load& load);

}  // namespace hark::advice
