// Decodes 30 s windows from log-mel to tokens, many at once. Each has its own prompt, language and
// temperature, and may start and end at any step.
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
#include "whisper/transcribe/logit_constraints.h"
#include "whisper/transcribe/pass.h"
#include "whisper/transcribe/search.h"

namespace hark::whisper {

class Drafter;
class GpuStep;
struct SampleRequest;

// The options of all windows of a run.
struct DecodingOptions {
    bool timestamps = true;
    int64_t best_of = 5;                   // rows per window above temperature 0
    int64_t beam_size = 1;                 // rows at temperature 0; 1: greedy
    double patience = 1;                   // finished sequences that end the search / beam_size
    std::optional<double> length_penalty;  // alpha; none: ranked by mean log probability
    double repetition_penalty = 1;
    int64_t no_repeat_ngram = 0;  // 0: n-grams may repeat
    std::vector<int32_t> suppressed;
    bool suppress_special = true;  // special tokens too, except languages, eot and timestamps
    std::vector<int32_t> prefix;   // the first tokens of each window's text
    int64_t sample_len = 0;        // tokens per window at most; 0: half of the model's context
    // Seconds; nullopt or 0: no limit.
    std::optional<double> max_initial_timestamp = 1.0;
    // Tokens per proposal of the draft model. At most 7: attention() gives up to 8 rows of a
    // sequence the bits that each has alone (ops.h).
    int64_t draft_tokens = 4;
};

// The tokens of a window's prompt, at most: half the model's context, less one.
inline size_t max_prompt_of(const Config& config) {
    return static_cast<size_t>(config.n_text_ctx / 2 - 1);
}

// CrossKvMode of a run. absorbed_attention() takes 1/60 of the memory. It is slower for few windows
// and for beams, faster from about 40 windows of large-v3 on (docs/kernels/attention.md). The
// smallest models lose 3% with many windows.
inline constexpr int64_t kMaxStoredKvWindows = 32;
inline CrossKvMode cross_kv_mode(int64_t windows, int64_t beam_size) {
    return windows > kMaxStoredKvWindows && beam_size == 1 ? CrossKvMode::recompute
                                                           : CrossKvMode::store;
}

// One window to decode.
struct WindowTask {
    int64_t slot = 0;             // that encode() has filled
    std::vector<int32_t> prompt;  // tokens of the text before it; the last ones are used
    Task task = Task::transcribe;
    std::string language;
    double temperature = 0;
    uint64_t seed = 0;
};

// What windows are encoded for.
enum class EncodePurpose : uint8_t { decode, detect_language };

class WindowDecoder {
  public:
    // Holds references: context, models and tokenizer must outlive it. It has `windows` slots.
    // `draft` may be null.
    WindowDecoder(Context& ctx, const Model& model, const Tokenizer& tokenizer,
                  const DecodingOptions& options, int64_t windows, const Model* draft = nullptr);
    ~WindowDecoder();

    // Encodes mel (B, 3000, n_mels), normalised and time-major, into B idle slots; B is at most
    // windows_at_once(). The draft model encodes it too, except for language detection.
    void encode(std::span<const int64_t> slots, Tensor mel,
                EncodePurpose purpose = EncodePurpose::decode);
    // 1 on the CPU: matrix products of more rows round differently.
    int64_t windows_at_once() const { return ctx_.on_cuda() ? 16 : 1; }
    // The probability of each language for the window in the idle `slot`, from the logits after
    // <|startoftranscript|>. Source: openai/whisper decoding.py, detect_language.
    std::map<std::string, double> language_probabilities(int64_t slot);
    // The likeliest language; also its probability unless that is null.
    std::string likeliest_language(int64_t slot, double* probability = nullptr);
    // Starts the windows in the tasks' slots: decodes their prompts and the first token of each
    // row.
    void start(std::span<const WindowTask> tasks);
    // Aligns the text, without timestamps, with the first `frames` mel frames of the window in the
    // idle `slot`, by the model's alignment heads (alignment.cc). The task is that of its last
    // start.
    TokenAlignment align(int64_t slot, const std::string& language, std::span<const int32_t> text,
                         int64_t frames);

    // Ends the window in the slot without a result.
    void stop(int64_t slot) { states_[static_cast<size_t>(slot)].decoding = false; }

    struct Finished {
        int64_t slot;
        DecodingResult result;
    };
    // Decodes at least one token of each started window. Returns the windows that have ended. On
    // the CPU a window's result does not depend on the others, to the bit.
    std::vector<Finished> step();

    int64_t slots() const { return static_cast<int64_t>(states_.size()); }
    const Tokenizer& tokenizer() const { return tokenizer_; }
    const LogitConstraints& constraints() const { return constraints_; }
    size_t max_prompt() const { return max_prompt_of(model_.config); }

  private:
    // The rows of one window. Row i has cache row slot * rows_per_window_ + i.
    struct WindowState {
        WindowTask task;
        std::vector<Row> rows, finished;                 // finished: for beams
        std::vector<Random> random;                      // for sampling, one per row
        std::vector<std::vector<Candidate>> candidates;  // for beams, one list per row
        bool decoding = false, beams = false;
    };
    // A row in a pass: its newest token and the drafts are packed rows packed .. packed +
    // drafts.size().
    struct ActiveRow {
        WindowState* state;
        size_t row;
        int64_t packed;
        std::vector<int32_t> drafts;
    };

    void begin(const WindowTask& task);
    void read_prompts(std::span<const WindowTask> tasks);
    // Run the pass of the tasks' prompts and sample the first token of each row.
    void begin_on_host(Pass& pass, std::span<const WindowTask> tasks);
    void begin_on_gpu(Pass& pass, std::span<const WindowTask> tasks);
    SampleRequest request_of(std::span<const int32_t> sampled, const WindowState& state,
                             Random& random) const;
    Row first_row(const WindowTask& task) const;
    int64_t rows_of(const WindowTask& task) const;  // before beams branch: 1, or best_of
    int32_t max_length(const Row& row) const;
    int64_t cache_row(int64_t slot, size_t row) const;
    void run(Pass& pass, std::vector<ActiveRow>& active);
    void run_on_gpu(Pass& pass, const std::vector<ActiveRow>& active);
    void take_logits(const ActiveRow& active, float* logits);
    void take_candidates(const ActiveRow& active, std::span<const Candidate> best);
    [[noreturn]] static void fail_without_token(const Row& row);
    void filter(const Row& row, std::span<float> logits) const;
    void advance(WindowState& state);
    // Copies to each row the cache of its parent row.
    void follow_parents(const WindowState& state);
    bool is_done(const WindowState& state) const;
    DecodingResult result(const WindowState& state) const;

    Context& ctx_;
    const Model& model_;
    const Tokenizer& tokenizer_;
    DecodingOptions options_;
    LogitConstraints constraints_;
    BeamOptions beams_;
    int64_t rows_per_window_;
    Caches caches_;
    std::unique_ptr<Drafter> drafter_;
    std::unique_ptr<GpuStep> gpu_;     // null: the host samples
    std::unique_ptr<UploadAhead> uploads_;  // of mel, if windows are encoded in several groups
    std::vector<WindowState> states_;  // by slot
};

}  // namespace hark::whisper
