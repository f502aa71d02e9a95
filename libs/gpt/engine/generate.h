// Generation: from a prompt to its completion, one token at a time.
#pragma once

#include <functional>
#include <memory>
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
    std::vector<std::string> stop;  // strings that end the text and are not part of it

    void flags(Flags& flags);
    void check() const;  // throws UsageError
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
// "end_of_text", "stop" or, for the other two, "length".
const char* name_of(Finish finish);

struct Completion {
    std::string text;              // valid UTF-8
    std::vector<int32_t> tokens;   // all that were generated, those of a stop string included
    std::vector<double> logprobs;  // per token: natural, under the model, before any filter
    Finish finish = Finish::length;
    int64_t dropped = 0;  // first tokens of the prompt that do not fit the context
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
    // keeps its end and leaves room for max_tokens or half the context, whichever is less.
    Completion operator()(std::string_view prompt, uint64_t index, const Callbacks& callbacks);
    // The same for a prompt of tokens.
    Completion operator()(std::vector<int32_t> prompt, uint64_t index, const Callbacks& callbacks);

  private:
    bool ends_text(int32_t token) const;
    std::vector<int32_t> truncate_prompt(std::vector<int32_t> ids, Completion& result) const;

    const Tokenizer& tokenizer_;
    GenerateOptions options_;
    std::unique_ptr<DecodeStream> stream_;
    int64_t n_positions_;
    std::vector<int32_t> eos_;
};

}  // namespace hark::gpt
