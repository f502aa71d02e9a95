#include "gpt/answers/answer_plan.h"

#include <algorithm>

#include "core/error.h"
#include "gpt/families/config.h"

namespace hark::gpt {
namespace {

constexpr int64_t kMaxTokens = 200;  // if the options do not say

}  // namespace

AnswerPlanner::AnswerPlanner(const DecoderConfig& config, const Tokenizer& tokenizer,
                             const GenerateOptions& defaults)
    : tokenizer_(tokenizer),
      context_(defaults.context > 0 ? defaults.context : config.n_positions),
      ends_(config.eos_token_ids) {
    require(tokenizer.vocab_size() <= config.n_vocab, "the tokenizer has ", tokenizer.vocab_size(),
            " tokens, the model only ", config.n_vocab);
    require(defaults.max_tokens <= context_, "--max-tokens ", defaults.max_tokens,
            " leaves no room for a prompt in the context of ", context_);
    sampler(defaults);
    const std::vector<int32_t>& ends = tokenizer.special_ids().ends;
    ends_.insert(ends_.end(), ends.begin(), ends.end());
    if (const auto end = tokenizer.end_of_text(); end && ends_.empty()) ends_.push_back(*end);
}

AnswerPlan AnswerPlanner::plan(size_t prompt, const GenerateOptions& options) const {
    require(prompt > 0, "the prompt has no tokens");
    if (const std::string why = why_too_long(prompt, options.max_tokens); !why.empty()) fail(why);
    AnswerPlan plan{.rules = {options.stop, options.ignore_eos ? std::vector<int32_t>{} : ends_,
                              options.shown}};
    // One more than the free positions: the last position's logits give a token too.
    const int64_t room = context_ - static_cast<int64_t>(prompt) + 1;
    const int64_t wanted = options.max_tokens > 0 ? options.max_tokens : kMaxTokens;
    plan.max_tokens = std::min(wanted, room);
    plan.finish = wanted <= room ? Finish::length : Finish::context_full;
    return plan;
}

std::unique_ptr<AnswerText> AnswerPlanner::begin(const AnswerPlan& plan, size_t prompt) const {
    auto answer = std::make_unique<AnswerText>(tokenizer_, plan.rules);
    answer->completion().prompt_tokens = static_cast<int64_t>(prompt);
    answer->completion().finish = plan.finish;
    return answer;
}

SamplerOptions AnswerPlanner::sampler(const GenerateOptions& options) {
    SamplerOptions sampler = options.sampler;
    for (const auto& [id, value] : sampler.logit_bias)
        require(id < tokenizer_.vocab_size(), "logit bias: expected tokens below ",
                tokenizer_.vocab_size(), ", found ", id);
    if (sampler.dry.multiplier > 0) sampler.dry.breakers = loop_breakers();
    return sampler;
}

std::string AnswerPlanner::why_too_long(size_t prompt, int64_t max_tokens) const {
    const auto n = static_cast<int64_t>(prompt);
    // The last token needs no place: the model does not read it.
    const int64_t needed = n + std::max<int64_t>(max_tokens, 1) - 1;
    if (needed <= context_) return "";
    const bool asked = max_tokens > 0;
    const std::string answer = asked ? concat(" and an answer of ", max_tokens) : "";
    return concat("the prompt's ", n, " tokens", answer, " do not fit the context (got ", needed,
                  asked ? " without the last one" : "", ", expected at most ", context_,
                  "); shorten the prompt", asked ? " or --max-tokens" : "");
}

const std::vector<int32_t>& AnswerPlanner::loop_breakers() {
    if (breakers_) return *breakers_;
    breakers_.emplace();
    for (int32_t id = 0; id < tokenizer_.vocab_size(); ++id)
        if (tokenizer_.has(id) &&
            (tokenizer_.is_special(id) ||
             tokenizer_.bytes_of(id).find_first_of("\n:\"*") != std::string::npos))
            breakers_->push_back(id);
    return *breakers_;
}

}  // namespace hark::gpt
