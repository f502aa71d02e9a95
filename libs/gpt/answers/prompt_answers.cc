#include "gpt/answers/prompt_answers.h"

#include <utility>

#include "core/profile/profile.h"

namespace hark::gpt {
namespace {

// A line of whisper-transcribe has its recording's name.
void follow_source(const ProfileSpan& span, const Prompt& prompt) {
    const nlohmann::json line = nlohmann::json::parse(prompt.metadata);
    if (line.contains("source") && line["source"].is_string()) span.follow(line["source"], "0");
}

}  // namespace

PromptAnswers::PromptAnswers(PromptEncoder& encoder, AnswerPlanner& planner,
                             GenerateOptions defaults, AnswerWriter& writer, Console& console)
    : encoder_(encoder),
      requests_(encoder, planner, std::move(defaults)),
      writer_(writer),
      console_(console) {}

PromptRequests::Asked PromptAnswers::ask(Prompt& prompt) {
    const ProfileSpan span("tokenize");
    if (is_measured()) follow_source(span, prompt);
    PromptRequests::Asked asked = requests_.ask(prompt);
    if (prompt.error.empty() && asked.options.logprobs && !writer_.options().jsonl)
        prompt.fail("invalid_value", "logprobs: true needs --format jsonl");
    return asked;
}

void PromptAnswers::check_end(const Prompt& prompt, const GenerateOptions& options,
                              Completion& answer) {
    if (prompt.empty() || PromptRequests::is_whole(options, answer)) return;
    const char* const what = "the answer ends before its constraint does";
    const char* const advice =
        name_of(answer.finish) == std::string("length") ? "; give more --max-tokens" : "";
    console_.error(prompt.where.empty() ? concat(what, advice)
                                        : concat(prompt.where, ": ", what, advice));
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
