// From what is asked of a prompt's answer to what an engine computes.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gpt/answers/answer_text.h"
#include "gpt/answers/generate_request.h"
#include "text/tokenizer.h"

namespace hark::gpt {

struct DecoderConfig;

struct AnswerPlan {
    AnswerRules rules;
    int64_t max_tokens = 1;          // at least 1
    Finish finish = Finish::length;  // why an answer of that many tokens ends
};

class AnswerPlanner {
  public:
    // `defaults`: of prompts without options of their own; the context holds for all. Throws Error
    // if the tokenizer has more tokens than the model, if max_tokens alone do not fit the context,
    // and as sampler() does. Keeps the reference to the tokenizer.
    AnswerPlanner(const DecoderConfig& config, const Tokenizer& tokenizer,
                  const GenerateOptions& defaults);

    // Of an answer to `prompt` tokens. Throws Error if they do not fit the context with max_tokens.
    AnswerPlan plan(size_t prompt, const GenerateOptions& options) const;
    // The answer of a plan to `prompt` tokens, before its first one. Its time begins.
    std::unique_ptr<AnswerText> begin(const AnswerPlan& plan, size_t prompt) const;
    // The options' sampler, with what it needs of the tokenizer. Throws Error if it names a token
    // that is not there.
    SamplerOptions sampler(const GenerateOptions& options);
    // Why `prompt` tokens do not fit the context with max_tokens of an answer; empty: they do.
    std::string why_too_long(size_t prompt, int64_t max_tokens) const;

    int64_t context() const { return context_; }
    // The tokens that end a text.
    const std::vector<int32_t>& ends() const { return ends_; }
    const Tokenizer& tokenizer() const { return tokenizer_; }

  private:
    const std::vector<int32_t>& loop_breakers();

    const Tokenizer& tokenizer_;
    int64_t context_;
    std::vector<int32_t> ends_;
    std::optional<std::vector<int32_t>> breakers_;
};

}  // namespace hark::gpt
