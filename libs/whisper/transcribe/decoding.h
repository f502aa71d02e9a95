// Decoding of 30 s windows: from log-mel to tokens, many windows side by side, each with its own
// prompt, language and temperature, beginning and ending when it will.
// Source: openai/whisper decoding.py, DecodingTask.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "whisper/model/tokenizer.h"
#include "whisper/transcribe/alignment.h"
#include "whisper/transcribe/decoding_result.h"
#include "whisper/transcribe/draft.h"
#include "whisper/transcribe/gpu_step.h"
#include "whisper/transcribe/logit_constraints.h"
#include "whisper/transcribe/pass.h"
#include "whisper/transcribe/search.h"

namespace hark::whisper {

// What is the same for all windows of a run.
struct DecodingOptions {
    Task task = Task::transcribe;
    bool timestamps = true;
    int64_t best_of = 5;                   // rows a window where the temperature is above 0
    int64_t beam_size = 1;                 // rows at temperature 0; 1: greedy
    double patience = 1;                   // times beam_size: finished sequences to wait for
    std::optional<double> length_penalty;  // alpha; none: the mean log probability ranks
    double repetition_penalty = 1;
    int64_t no_repeat_ngram = 0;  // 0: n-grams may repeat
    std::vector<int32_t> suppressed;
    bool suppress_special = true;  // the special tokens too, except languages, eot and timestamps
    std::vector<int32_t> prefix;   // tokens that every window's text begins with
    int64_t sample_len = 0;        // tokens per window at most; 0: half of the model's context
    // Seconds; nullopt or 0: no limit.
    std::optional<double> max_initial_timestamp = 1.0;
    // Guessed at a time where there is a draft model; up to 7: so many rows of a sequence come out
    // of attention with the bits that each has alone (ops.h).
    int64_t draft_tokens = 4;
};

// What a run keeps of so many windows side by side. Folded attention takes a sixtieth of the memory
// and twice as long for one window; it is the faster from about 40 of large-v3 on
// (docs/kernels/attention.md). Each of a window's beams would compute by itself. The smallest
// models lose 3% with many windows, but memory too.
inline constexpr int64_t kFewWindows = 32;
inline Keep keep_of(int64_t windows, int64_t beam_size) {
    return windows > kFewWindows && beam_size == 1 ? Keep::encoded : Keep::key_values;
}

// One window to decode.
struct WindowTask {
    int64_t slot = 0;             // where encode() has put it
    std::vector<int32_t> prompt;  // tokens of the text before; the newest ones are used
    std::string language;
    double temperature = 0;
    uint64_t seed = 0;
};

class WindowDecoder {
  public:
    // Holds references: context, models and tokenizer must outlive it. `windows` slots; `draft` may
    // be null.
    WindowDecoder(Context& ctx, const Model& model, const Tokenizer& tokenizer,
                  const DecodingOptions& options, int64_t windows, const Model* draft = nullptr);

    // Encodes mel (B, 3000, n_mels), normalised and time-major, into B slots that are not decoding,
    // at most windows_at_once() of them; for language detection alone the draft model does not hear
    // it.
    enum class Purpose { decode, detect_language };
    void encode(std::span<const int64_t> slots, Tensor mel, Purpose purpose = Purpose::decode);
    // One on the CPU, where products of more rows round otherwise.
    int64_t windows_at_once() const { return ctx_.on_cuda() ? 16 : 1; }
    // The probability of each language for the window in `slot`, by the model's first step. The
    // slot must not be decoding. Source: openai/whisper decoding.py, detect_language.
    std::map<std::string, double> language_probabilities(int64_t slot);
    // The one that is likeliest, and how likely where that is asked for.
    std::string likeliest_language(int64_t slot, double* probability = nullptr);
    // Begins to decode the windows in the tasks' slots: reads their prompts.
    void start(std::span<const WindowTask> tasks);
    // Aligns the text, without timestamps, with the first `frames` mel frames of the window in
    // `slot`, which is not decoding, by the model's alignment heads. (alignment.cc)
    TokenAlignment align(int64_t slot, const std::string& language, std::span<const int32_t> text,
                         int64_t frames);

    struct Done {
        int64_t slot;
        DecodingResult result;
    };
    // One token more, at least, for all that are decoding; those that came to their end. What a
    // window comes to does not depend on the others, to the bit (CPU).
    std::vector<Done> step();

    int64_t slots() const { return static_cast<int64_t>(groups_.size()); }
    const Tokenizer& tokenizer() const { return tokenizer_; }
    const Rules& rules() const { return rules_; }
    size_t max_prompt() const { return static_cast<size_t>(model_.config.n_text_ctx / 2 - 1); }

  private:
    // The rows of one window; row i's cache is row slot * rows_a_window + i.
    struct Group {
        WindowTask task;
        std::vector<Row> rows, finished;                 // finished: of beams
        std::vector<Random> random;                      // of sampling
        std::vector<std::vector<Candidate>> candidates;  // of beams
        bool decoding = false, beams = false;
    };
    // Rows [packed, packed + drafts.size()] of a pass.
    struct Going {
        Group* group;
        size_t row;
        int64_t packed;
        std::vector<int32_t> drafts;
    };

    void begin(const WindowTask& task);
    void read_prompts(std::span<const WindowTask> tasks);
    // Run the pass of the tasks' prompts and give each row its first token.
    void begin_on_host(Pass& pass, std::span<const WindowTask> tasks);
    void begin_on_gpu(Pass& pass, std::span<const WindowTask> tasks);
    RowChoice choice_of(std::span<const int32_t> sampled, const Group& group, Random& random) const;
    Row first_row(const WindowTask& task) const;
    int64_t rows_of(const WindowTask& task) const;  // that go on from its prompt
    int32_t max_length(const Row& row) const;
    int64_t cache_row(int64_t slot, size_t row) const;
    void run(Pass& pass, std::vector<Going>& going);
    void run_on_gpu(Pass& pass, const std::vector<Going>& going);
    void take_logits(const Going& going, float* logits);
    void take_candidates(const Going& going, std::span<const Candidate> best);
    [[noreturn]] static void fail_without_token(const Row& row);
    void filter(const Row& row, std::span<float> logits) const;
    void advance(Group& group);
    // Every row's cache becomes that of the row it goes on from.
    void follow_parents(const Group& group);
    bool is_done(const Group& group) const;
    DecodingResult result(const Group& group) const;

    Context& ctx_;
    const Model& model_;
    const Tokenizer& tokenizer_;
    DecodingOptions options_;
    Rules rules_;
    BeamOptions beams_;
    int64_t rows_a_window_;
    Caches caches_;
    std::unique_ptr<Drafter> drafter_;
    std::unique_ptr<GpuStep> gpu_;  // none: logits come to the host
    std::vector<Group> groups_;     // by slot
};

}  // namespace hark::whisper
