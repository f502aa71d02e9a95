#include "gpt/answers/prompt_requests.h"

#include <utility>

#include "gpt/chat/tool_calls.h"

namespace hark::gpt {

PromptRequests::PromptRequests(PromptEncoder& encoder, AnswerPlanner& planner,
                               GenerateOptions defaults)
    : encoder_(encoder),
      planner_(planner),
      defaults_(std::move(defaults)),
      constraints_(encoder.tokenizer(), planner.ends(), encoder.markers()) {}

PromptRequests::Asked PromptRequests::ask(Prompt& prompt) {
    std::vector<int32_t> ids = encoder_.ids(prompt);
    return ask(prompt, std::move(ids));
}

PromptRequests::Asked PromptRequests::ask(Prompt& prompt, std::vector<int32_t> ids) {
    Asked asked{.ids = std::move(ids)};
    GenerateOptions& own = asked.options = prompt.settings.over(defaults_, index_);
    const std::string too_long = planner_.why_too_long(asked.ids.size(), own.max_tokens);
    if (prompt.error.empty() && !too_long.empty()) prompt.fail("context_length_exceeded", too_long);
    if (!prompt.tools.empty())
        for (const int32_t token : tool_call_tokens(encoder_.tokenizer()))
            own.shown.push_back(token);
    if (prompt.error.empty()) constrain(prompt, own);
    if (!asked.ids.empty()) ++index_;
    return asked;
}

void PromptRequests::constrain(Prompt& prompt, GenerateOptions& options) {
    if (options.constraint.kind == ConstraintRequest::Kind::none) return;
    if (options.ignore_eos)
        return prompt.fail("invalid_value", "a constrained answer is not for --ignore-eos");
    try {
        options.sampler.constraint = constraints_.masks(options.constraint, prompt.opens_reasoning);
    } catch (const Error& why) {
        prompt.fail("invalid_value", why.what());
    }
}

GenerateOptions PromptRequests::of_sample(const GenerateOptions& options, int64_t sample) {
    GenerateOptions own = options;
    own.seed = static_cast<int64_t>(sample_seed(static_cast<uint64_t>(options.seed), sample));
    return own;
}

bool PromptRequests::is_whole(const GenerateOptions& options, Completion& answer) {
    if (!options.sampler.constraint) return true;
    const ConstraintEnd end = end_of(*options.sampler.constraint, answer.tokens);
    // The token that ends a text would only say so.
    if (end.final) answer.finish = Finish::end_of_text;
    return end.complete;
}

}  // namespace hark::gpt
