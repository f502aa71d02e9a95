#include "gpt/engine/answerer.h"

#include <chrono>
#include <utility>

#include "gpt/engine/tool_calls.h"

namespace hark::gpt {

Answerer::Answerer(PromptEncoder& encoder, Generator& generator, GenerateOptions defaults,
                   AnswerWriter& answers, Console& console)
    : encoder_(encoder),
      generator_(generator),
      defaults_(std::move(defaults)),
      answers_(answers),
      console_(console) {}

void Answerer::operator()(Prompt prompt) {
    const std::vector<int32_t> ids = encoder_.ids(prompt);
    GenerateOptions own = prompt.settings.over(defaults_, index_);
    const std::string too_long = generator_.why_too_long(ids.size(), own.max_tokens);
    if (prompt.error.empty() && own.logprobs && !answers_.options().jsonl)
        prompt.fail("invalid_value", "logprobs: true needs --format jsonl");
    if (prompt.error.empty() && !too_long.empty()) prompt.fail("context_length_exceeded", too_long);
    if (!prompt.tools.empty())
        for (const int32_t token : tool_call_tokens(encoder_.tokenizer()))
            own.shown.push_back(token);
    const auto seed = static_cast<uint64_t>(own.seed);
    for (int64_t sample = 0; sample < own.samples && prompt.error.empty(); ++sample) {
        own.seed = static_cast<int64_t>(sample_seed(seed, sample));
        answer(prompt, ids, own, sample);
    }
    if (!prompt.error.empty()) answers_.fail(prompt);
    if (!ids.empty()) ++index_;
}

void Answerer::answer(Prompt& prompt, const std::vector<int32_t>& ids,
                      const GenerateOptions& options, int64_t sample) {
    Completion answer;
    answers_.begin(prompt);
    const auto begin = std::chrono::steady_clock::now();
    if (!ids.empty())
        answer = generator_(ids, options, [&](std::string_view text) { answers_.text(text); });
    if (!answer.error.empty()) return prompt.fail("model_error", answer.error);
    if (generator_.has_prompt_cache() && answer.cached_tokens == 0 && !is_told_) {
        is_told_ = true;
        console_.warning(concat(options.prompt_cache,
                                ": no part of it was used: the prompt begins ",
                                "otherwise, or its window needs keys that are not there"));
    }
    const AnswerParts parts =
        prompt.empty() ? AnswerParts{} : answer_parts(prompt, answer, answers_.options().parts);
    if (!prompt.error.empty()) return;
    answers_.end(prompt, sample, answer, parts, options);
    if (!parts.said.empty())
        encoder_.append(prompt, parts.said);
    else if (!answer.text.empty())
        console_.warning(concat("the text ends within the model's reasoning",
                                answer.finish == Finish::length ? "; give more --max-tokens" : ""));
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
    console_.stage("answer", concat(answer.tokens.size(), " tokens"), took.count());
}

}  // namespace hark::gpt
