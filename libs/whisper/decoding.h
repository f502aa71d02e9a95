// Decoding of 30 s windows: from log-mel to tokens, several windows and rows side by side.
// Source: openai/whisper decoding.py, DecodingTask.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "whisper/model.h"
#include "whisper/rules.h"
#include "whisper/search.h"
#include "whisper/tokenizer.h"

namespace hark::whisper {

// What is the same for all windows of a run.
struct DecodingOptions {
    Task task = Task::transcribe;
    bool timestamps = true;
    int64_t best_of = 5;  // rows a window where the temperature is above 0
};

// One window to decode.
struct WindowTask {
    int64_t slot = 0;             // where encode() has put it
    std::vector<int32_t> prompt;  // tokens of the text before; the newest ones are used
    std::string language;
    double temperature = 0;
    uint64_t seed = 0;
};

struct DecodingResult {
    std::vector<int32_t> tokens;  // timestamps included, eot not
    std::string text;             // stripped
    double temperature = 0;
    double avg_logprob = 0;  // natural logarithm, a token, eot counted
    double no_speech_prob = 0;
    double compression_ratio = 0;
};

class WindowDecoder {
  public:
    // Holds references: context, model and tokenizer must outlive it. `windows` slots.
    WindowDecoder(Context& ctx, const Model& model, const Tokenizer& tokenizer,
                  const DecodingOptions& options, int64_t windows);

    // Encodes mel (B, 3000, n_mels), normalised and time-major, into slots 0 to B - 1.
    void encode(Tensor mel);
    // The probability of each language for the window in `slot`, by the model's first step.
    // Source: openai/whisper decoding.py, detect_language.
    std::map<std::string, double> language_probabilities(int64_t slot);
    // Decodes the windows; results in the order of the tasks.
    std::vector<DecodingResult> decode(std::span<const WindowTask> tasks);

    const Tokenizer& tokenizer() const { return tokenizer_; }
    const Rules& rules() const { return rules_; }

  private:
    struct Step;   // the packed rows of one forward pass
    struct Batch;  // the rows that are decoded side by side

    Row first_row(const WindowTask& task) const;
    Batch make_batch(std::span<const WindowTask> tasks) const;
    // Logits (n, n_vocab) of the step's wanted rows, in the arena.
    Tensor forward(const Step& step);
    // One pass over the prompts, then the first token of every row.
    void read_prompts(Batch& batch);
    // Rows of the same window begin with the cache of its first one.
    void copy_to_siblings(const Batch& batch);
    // One token more for every row that goes on; false where none does.
    bool advance(Batch& batch);
    void sample(Batch& batch, size_t i, std::span<float> logits) const;
    DecodingResult result(std::span<const Row> group, double temperature) const;

    Context& ctx_;
    const Model& model_;
    const Tokenizer& tokenizer_;
    DecodingOptions options_;
    Rules rules_;
    std::unique_ptr<KeyValues> self_;  // as many rows as any decode() has needed
    std::unique_ptr<KeyValues> cross_;
};

// How well text compresses: bytes / bytes deflated by zlib's default level.
// Source: openai/whisper utils.py, compression_ratio. Empty text: 0 / 8, as there.
double compression_ratio(const std::string& text);

// The text without white space at its ends (Python's str.strip(), Unicode spaces too).
std::string strip(const std::string& text);

}  // namespace hark::whisper
