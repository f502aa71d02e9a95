#include "gpt/answers/answerer.h"

#include <chrono>

#include "gpt/answers/generate.h"

namespace hark::gpt {

Answerer::Answerer(PromptAnswers& answers, Generator& generator, Console& console)
    : answers_(answers), generator_(generator), console_(console) {}

void Answerer::operator()(Prompt prompt) {
    const auto [ids, options] = answers_.ask(prompt);
    for (int64_t sample = 0; sample < options.samples && prompt.error.empty(); ++sample)
        answer(prompt, ids, PromptRequests::of_sample(options, sample), sample);
    if (!prompt.error.empty()) answers_.writer().fail(prompt);
}

void Answerer::answer(Prompt& prompt, const std::vector<int32_t>& ids,
                      const GenerateOptions& options, int64_t sample) {
    Completion answer;
    AnswerWriter& writer = answers_.writer();
    writer.begin(prompt);
    const auto begin = std::chrono::steady_clock::now();
    if (!ids.empty())
        answer = generator_(ids, options, [&](std::string_view text) { writer.text(text); });
    if (answer.error.empty() && generator_.has_prompt_cache() && answer.cached_tokens == 0 &&
        !is_told_) {
        is_told_ = true;
        console_.warning(concat(options.prompt_cache,
                                ": no part of it was used: the prompt begins ",
                                "otherwise, or its window needs keys that are not there"));
    }
    answers_.end(prompt, sample, answer, options);
    if (!prompt.error.empty()) return;
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
    console_.stage("answer", concat(answer.tokens.size(), " tokens"), took.count());
}

}  // namespace hark::gpt
