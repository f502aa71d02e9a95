// Generation: from a prompt to its completion, one token at a time.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gpt/engine/decode_stream.h"
#include "text/tokenizer.h"
#include "text/utf8.h"

namespace hark::gpt {

struct GenerateOptions {
    SamplerOptions sampler;
    int64_t max_tokens = 200;
    int64_t seed = 0;
    int64_t samples = 1;            // answers per prompt
    std::vector<std::string> stop;  // strings that end the text and are not part of it
    bool ignore_eos = false;
    std::optional<int64_t> logprobs;  // tokens whose log probabilities are wanted at each place
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
    stop,          // a stop string
    length,        // max_tokens
    context_full,  // there are no positions left
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
    std::string error;          // what ended it; empty: nothing did
    int64_t dropped = 0;        // first tokens of the prompt that do not fit the context
    int64_t prompt_tokens = 0;  // without the dropped ones
    int64_t cached_tokens = 0;  // of them, those that were not computed for this text
    double seconds_to_first_token = 0;
    double tokens_per_second = 0;  // after the first one; 0 if there is no second one
};

class Generator {
  public:
    // Throws Error if the tokenizer has more tokens than the model. Holds references.
    Generator(Context& ctx, const Model& model, const Tokenizer& tokenizer,
              GenerateOptions options);

    struct Callbacks {
        // Called once, before all text, with the number of dropped prompt tokens.
        std::function<void(int64_t dropped)> begin;
        std::function<void(std::string_view)> text;  // each piece as soon as it is certain
    };
    // Continues a non-empty prompt. Prompt `index` of a run draws with seed + index: equal prompts
    // get different answers, the first the one it gets alone. A prompt longer than the context
    // keeps its end and leaves room for max_tokens or half the context, whichever is less. Throws
    // Error if the model does.
    Completion operator()(std::string_view prompt, uint64_t index, const Callbacks& callbacks);
    // The same for a prompt of tokens with options of its own, which draws with options.seed. What
    // the model throws is the answer's error.
    Completion operator()(std::vector<int32_t> prompt, const GenerateOptions& options,
                          const Callbacks& callbacks);

  private:
    class Times;

    bool ends_text(int32_t token) const;
    std::vector<int32_t> truncate_prompt(std::vector<int32_t> ids, int64_t max_tokens,
                                         Completion& result) const;
    // Makes the stream for these options, unless it is there.
    void prepare(const GenerateOptions& options);
    const std::vector<int32_t>& loop_breakers();

    Context& ctx_;
    const Model& model_;
    const Tokenizer& tokenizer_;
    GenerateOptions options_;
    std::unique_ptr<DecodeStream> stream_;
    SamplerOptions stream_sampler_;  // the options that stream_ was made with
    int64_t stream_likeliest_ = 0;
    std::optional<std::vector<int32_t>> breakers_;
    int64_t n_positions_;
    std::vector<int32_t> eos_;
};

}  // namespace hark::gpt
