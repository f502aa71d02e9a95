// Proves advice on this machine: the same recordings or prompts without flags and with those that
// are advised; their speeds, and the words that change.
#pragma once

#include <string>
#include <vector>

#include "core/context.h"
#include "core/json/json.h"
#include "operations/advice/advice.h"

namespace hark::models {
struct ModelHandle;
}

namespace hark::advice {

struct ProofRun {
    Choice choice;
    double seconds = 0;  // without loading the model and decoding recordings
    double speed = 0;    // times real time, or tokens per second
    std::vector<std::string> texts;
};

struct Proof {
    ProofRun standard, advised;  // advised.choice.batch 0: no flag was advised
    bool is_whisper = false;
    int64_t inputs = 0;  // recordings or prompts
    double amount = 0;   // seconds of audio, or tokens
    int64_t unfilled_batch = 0;  // the advised one, if it is larger and the inputs are fewer
    int64_t words = 0, changed = 0;
};

// Each way is run once, in turn, and a second time if that took less than 20 s; the quickest
// counts. Recordings are decoded and transcribed by the library, as `audio-decode | mel |
// whisper-transcribe` would. `inputs`: recordings; or files whose lines are prompts. Empty: those
// of samples/, repeated until they fill the larger batch. Throws Error naming an input that cannot
// be read.
Proof prove(Context& ctx, const models::ModelHandle& model, const Analysis& analysis,
            const std::vector<std::string>& inputs);

std::string proof_text(const Proof& proof);
nlohmann::ordered_json proof_json(const Proof& proof);

}  // namespace hark::advice
