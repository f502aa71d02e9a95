// Generation: from a prompt to its completion, one token at a time.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/files.h"
#include "gpt/engine/decode_stream.h"
#include "text/tokenizer.h"
#include "text/utf8.h"

namespace hark::gpt {

struct GenerateOptions {
    SamplerOptions sampler;
    int64_t max_tokens = 0;  // 0: 200, or fewer where the context ends
    int64_t seed = 0;
    int64_t samples = 1;            // answers per prompt
    std::vector<std::string> stop;  // strings that end the text and are not part of it
    bool ignore_eos = false;
    std::optional<int64_t> logprobs;  // tokens whose log probabilities are wanted at each place
    int64_t context = 0;              // tokens of prompt and answer; 0: the model's own
    std::string kv_dtype = "auto";    // of keys and values; auto: by --dtype
    std::string prompt_cache;         // file of a prompt's keys and values; empty: none
    std::vector<int32_t> shown;       // special tokens that are in the text; the others are not

    // The same with the cache's type.
    Precision with_cache(Precision precision) const;
};

// Holds text back while it may be the beginning of a stop string.
class StopFilter {
  public:
    explicit StopFilter(std::vector<std::string> stops) : stops_(std::move(stops)) {}

    // Adds text; returns what is certain by now. After a complete stop string stopped() is true,
    // and the returned text ends before that string.
    std::string push(std::string_view text);
    // Returns the text that is still held back.
    std::string finish();
    bool stopped() const { return stopped_; }

  private:
    std::vector<std::string> stops_;
    std::string held_;
    bool stopped_ = false;
};

// Why a text ended.
enum class Finish {
    end_of_text,   // the model's end-of-text token
    stop,          // a stop string, or Ctrl-C (core/ending_signal.h)
    length,        // max_tokens
    context_full,  // the context is full
};
// OpenAI's name: "stop" for the first two, "length" for the others.
const char* name_of(Finish finish);
// The seed of a prompt's sample: its own for the first one.
uint64_t sample_seed(uint64_t seed, int64_t sample);

struct Completion {
    std::string text;              // valid UTF-8
    std::vector<int32_t> tokens;   // all that were generated, those of a stop string included
    std::vector<double> logprobs;  // per token: natural, under the model, before any filter
    std::vector<std::vector<TokenLogprob>> likeliest;  // per token, if they are wanted
    Finish finish = Finish::length;
    std::string error;  // what ended it; empty: nothing did
    int64_t prompt_tokens = 0;
    int64_t cached_tokens = 0;  // of them, those that were not computed for this text
    double seconds_to_first_token = 0;
    double tokens_per_second = 0;  // after the first one; 0 if there is no second one
};

class Generator {
  public:
    // Throws Error if the tokenizer has more tokens than the model, or the context more than the
    // model's, if max_tokens alone do not fit the context, and if the prompt cache is of another
    // model or cannot be written. Holds references.
    Generator(Context& ctx, const Model& model, const Tokenizer& tokenizer,
              GenerateOptions options);

    using OnText = std::function<void(std::string_view)>;  // each piece as soon as it is certain

    // Continues a non-empty prompt. Prompt `index` of a run draws with seed + index: equal prompts
    // get different answers, the first the one it gets alone. Throws Error, before the first
    // token, if the prompt and max_tokens do not fit the context, and if the model does.
    Completion operator()(std::string_view prompt, uint64_t index, const OnText& on_text = {});
    // The same for a prompt of tokens with options of its own, which draws with options.seed. What
    // the model throws is the answer's error.
    Completion operator()(const std::vector<int32_t>& prompt, const GenerateOptions& options,
                          const OnText& on_text = {});
    // Whether the options' prompt cache was there before, so that prompts may begin as it does.
    bool has_prompt_cache() const { return cache_is_read_; }
    // Why a prompt of `tokens` tokens does not fit with max_tokens of an answer; empty: it does.
    std::string why_too_long(size_t tokens, int64_t max_tokens) const;

  private:
    class Times;

    bool ends_text(int32_t token) const;
    // Makes the stream for these options, unless it is there.
    void prepare(const GenerateOptions& options);
    const std::vector<int32_t>& loop_breakers();
    // Reads the prompt cache if the prompt has more in common with it than with the last sequence.
    void take_from_cache(std::span<const int32_t> prompt);
    // Writes the prompt whose first token has been chosen to the prompt cache, unless it is there.
    void save_prompt();

    Context& ctx_;
    const Model& model_;
    const Tokenizer& tokenizer_;
    GenerateOptions options_;
    std::unique_ptr<DecodeStream> stream_;
    SamplerOptions stream_sampler_;  // the options that stream_ was made with
    int64_t stream_likeliest_ = 0;
    std::optional<std::vector<int32_t>> breakers_;
    std::unique_ptr<AtomicFile> new_cache_;  // a prompt cache that is to be written
    bool cache_is_read_ = false;
    std::vector<int32_t> cached_;  // the prompt cache's tokens
    int64_t context_;
    std::vector<int32_t> eos_;
};

}  // namespace hark::gpt
