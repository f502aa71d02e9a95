// Generation: prompt in, text out, a token at a time.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "gpt/engine/steps.h"
#include "text/bpe.h"
#include "text/utf8.h"

namespace hark::gpt {

struct GenerateOptions {
    SamplerOptions sampler;
    int64_t max_tokens = 200;
    int64_t seed = 0;
    std::vector<std::string> stop;  // strings that end the text; none of them is part of it

    void flags(Flags& flags);
    void check() const;  // throws UsageError
};

// Text on its way out, held back as long as it may be the beginning of a stop string.
class StopFilter {
  public:
    explicit StopFilter(std::vector<std::string> stops) : stops_(std::move(stops)) {}

    // What is certain once `text` has come. Where a stop string has begun and ended, the text ends
    // before it, and stopped() is true.
    std::string push(std::string_view text);
    // What was held back in vain.
    std::string finish();
    bool stopped() const { return stopped_; }

  private:
    std::vector<std::string> stops_;
    std::string held_;
    bool stopped_ = false;
};

// Why a text ended.
enum class Finish {
    end_of_text,   // the model said so
    stop,          // a stop string
    length,        // max_tokens
    context_full,  // there are no positions left
};
// "end_of_text", "stop" or, for the other two, "length".
const char* name_of(Finish finish);

struct Generated {
    std::string text;              // valid UTF-8
    std::vector<int32_t> tokens;   // all that were generated, those of a stop string included
    std::vector<double> logprobs;  // of each: natural, under the model itself, before any filter
    Finish finish = Finish::length;
    int64_t dropped = 0;  // tokens of the prompt's beginning that the context cannot hold
};

class Generator {
  public:
    // Throws Error where the vocabulary has more tokens than the model. Holds references.
    Generator(Context& ctx, const Model& model, const Bpe& bpe, GenerateOptions options);

    struct Listener {
        // Once, before all text: how many tokens of the prompt's beginning are left out.
        std::function<void(int64_t dropped)> begin;
        std::function<void(std::string_view)> text;  // every piece as soon as it is certain
    };
    // Continues the prompt, which must not be empty. The `index`-th prompt of a run draws with seed
    // + index, so that equal prompts get different answers and the first one the answer it would
    // get alone. A prompt longer than the context keeps its end, and leaves room for max_tokens or
    // half the context, whichever is less.
    Generated operator()(std::string_view prompt, uint64_t index, const Listener& listener);

  private:
    bool ends_text(int32_t token) const;
    std::vector<int32_t> fitted(std::vector<int32_t> ids, Generated& result) const;

    const Bpe& bpe_;
    GenerateOptions options_;
    std::unique_ptr<Steps> steps_;
    int64_t n_positions_;
    std::vector<int32_t> eos_;
};

}  // namespace hark::gpt
