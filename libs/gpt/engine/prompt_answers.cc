#include "gpt/engine/prompt_answers.h"

#include <utility>

#include "gpt/engine/tool_calls.h"

namespace hark::gpt {

PromptAnswers::PromptAnswers(PromptEncoder& encoder, AnswerPlanner& planner,
                             GenerateOptions defaults, AnswerWriter& writer, Console& console)
    : encoder_(encoder),
      planner_(planner),
      defaults_(std::move(defaults)),
      constraints_(encoder.tokenizer(), planner.ends(), encoder.markers()),
      writer_(writer),
      console_(console) {}

PromptAnswers::Asked PromptAnswers::ask(Prompt& prompt) {
    Asked asked{.ids = encoder_.ids(prompt)};
    GenerateOptions& own = asked.options = prompt.settings.over(defaults_, index_);
    const std::string too_long = planner_.why_too_long(asked.ids.size(), own.max_tokens);
    if (prompt.error.empty() && own.logprobs && !writer_.options().jsonl)
        prompt.fail("invalid_value", "logprobs: true needs --format jsonl");
    if (prompt.error.empty() && !too_long.empty()) prompt.fail("context_length_exceeded", too_long);
    if (!prompt.tools.empty())
        for (const int32_t token : tool_call_tokens(encoder_.tokenizer()))
            own.shown.push_back(token);
    if (prompt.error.empty()) constrain(prompt, own);
    if (!asked.ids.empty()) ++index_;
    return asked;
}

void PromptAnswers::constrain(Prompt& prompt, GenerateOptions& options) {
    if (options.constraint.kind == ConstraintRequest::Kind::none) return;
    if (options.ignore_eos)
        return prompt.fail("invalid_value", "a constrained answer is not for --ignore-eos");
    try {
        options.sampler.constraint = constraints_.masks(options.constraint, prompt.opens_reasoning);
    } catch (const Error& why) {
        prompt.fail("invalid_value", why.what());
    }
}

void PromptAnswers::check_end(const Prompt& prompt, const GenerateOptions& options,
                              Completion& answer) {
    if (!options.sampler.constraint || prompt.empty()) return;
    const ConstraintEnd end = end_of(*options.sampler.constraint, answer.tokens);
    // The token that ends a text would only say so.
    if (end.final) answer.finish = Finish::end_of_text;
    if (end.complete) return;
    const char* const what = "the answer ends before its constraint does";
    const char* const advice =
        name_of(answer.finish) == std::string("length") ? "; give more --max-tokens" : "";
    console_.error(prompt.where.empty() ? concat(what, advice)
                                        : concat(prompt.where, ": ", what, advice));
}

GenerateOptions PromptAnswers::of_sample(const GenerateOptions& options, int64_t sample) {
    GenerateOptions own = options;
    own.seed = static_cast<int64_t>(sample_seed(static_cast<uint64_t>(options.seed), sample));
    return own;
}

void PromptAnswers::end(Prompt& prompt, int64_t sample, Completion& answer,
                        const GenerateOptions& options) {
    if (!answer.error.empty()) return prompt.fail("model_error", answer.error);
    check_end(prompt, options, answer);
    const AnswerParts parts =
        prompt.empty() ? AnswerParts{} : answer_parts(prompt, answer, writer_.options().parts);
    if (!prompt.error.empty()) return;
    writer_.end(prompt, sample, answer, parts, options);
    if (!parts.said.empty())
        encoder_.append(prompt, parts.said);
    else if (!answer.text.empty())
        console_.warning(concat("the text ends within the model's reasoning",
                                answer.finish == Finish::length ? "; give more --max-tokens" : ""));
}

}  // namespace hark::gpt
