#include "serve/openai/text_answer.h"

#include <algorithm>
#include <utility>

#include "gpt/answers/answer_line.h"
#include "serve/openai/errors.h"
#include "serve/openai/events.h"
#include "serve/text/text_model.h"
#include "serve/text/text_service.h"
#include "text/utf8.h"

namespace hark::serve {
namespace {

using nlohmann::ordered_json;

double seconds_between(std::chrono::steady_clock::time_point from,
                       std::chrono::steady_clock::time_point to) {
    return std::chrono::duration<double>(to - from).count();
}

// A call that was cut off is none.
std::string reason_of(const gpt::Completion& answer, const gpt::AnswerParts& parts) {
    const bool calls = !parts.tool_calls.is_null() && answer.finish == gpt::Finish::end_of_text;
    return calls ? "tool_calls" : name_of(answer.finish);
}

}  // namespace

void TextAnswer::start(TextService& service, ModelLease lease, TextQuery query,
                       std::shared_ptr<WebAnswer> out) {
    service.check_room();
    const auto answer =
        std::make_shared<TextAnswer>(service, std::move(lease), std::move(query), out);
    out->when_left([answer] { answer->cancel(); });  // keeps it until then, or until its end
    answer->ask();
}

TextAnswer::TextAnswer(TextService& service, ModelLease lease, TextQuery query,
                       std::shared_ptr<WebAnswer> out)
    : service_(service),
      lease_(std::move(lease)),
      query_(std::move(query)),
      out_(std::move(out)),
      head_(new_answer_head(query_.model, query_.is_chat)) {}

void TextAnswer::ask() {
    const size_t prompts = query_.is_chat ? 1 : query_.texts.size();
    for (size_t i = 0; i < prompts; ++i) {
        const auto job = std::make_shared<TextJob>();
        job->prompt = query_.prompt;
        job->is_chat = query_.is_chat;
        job->max_tokens = query_.max_tokens;
        job->index = static_cast<int64_t>(i);
        job->scores_prompt = query_.echoes;
        job->listener = weak_from_this();
        if (!query_.is_chat) {
            job->prompt.text = query_.texts[i].text;
            job->ids = query_.texts[i].ids;
        }
        jobs_.push_back(job);
    }
    service_.ask(jobs_);
}

void TextAnswer::cancel() {
    for (const auto& job : jobs_) service_.cancel(job);
}

int64_t TextAnswer::number_of(const TextJob& job, int64_t sample) const {
    return job.index * query_.samples + sample;
}

void TextAnswer::prepared(const TextJob& job) {
    usage_.prompt += std::ssize(job.tokens);
    if (++prepared_ < jobs_.size()) return;
    left_ = query_.samples * std::ssize(jobs_);
    choices_.resize(static_cast<size_t>(left_));
    if (query_.is_chat)
        for (Choice& choice : choices_)
            choice.splitter =
                gpt::ReasoningSplitter(service_.model().markers(), job.prompt.opens_reasoning);
    if (query_.streams) out_->begin(event_stream());
}

void TextAnswer::scored(const TextJob& job, const gpt::Completion& prompt) {
    scored_[job.index] = prompt;
}

ordered_json TextAnswer::logprobs_of(const TextJob& job, const gpt::Completion& part,
                                     size_t offset) const {
    if (!job.options.logprobs) return nullptr;
    return query_.is_chat ? gpt::logprobs_json(part, service_.model().tokenizer())
                          : completion_logprobs(part, service_.model().tokenizer(), offset);
}

ordered_json TextAnswer::all_logprobs(const TextJob& job, const gpt::Completion& answer) const {
    const auto prompt = scored_.find(job.index);
    return prompt == scored_.end()
               ? logprobs_of(job, answer, 0)
               : echoed_logprobs(prompt->second, answer, service_.model().tokenizer());
}

void TextAnswer::count_part(Choice& choice, const gpt::Completion& part) {
    const Clock::time_point now = Clock::now();
    TextMetrics& metrics = service_.metrics();
    metrics.generated_tokens += part.tokens.size();
    if (choice.tokens == 0) {
        metrics.seconds_to_first_token.add(seconds_between(begin_, now));
        choice.first = now;
    } else {
        metrics.seconds_between_tokens.add(seconds_between(choice.last, now));
    }
    choice.last = now;
    ++choice.tokens;
}

void TextAnswer::count_end(const Choice& choice, const TextJob& job,
                           const gpt::Completion& answer) {
    TextMetrics& metrics = service_.metrics();
    metrics.seconds_in_all.add(seconds_between(begin_, Clock::now()));
    metrics.seconds_in_queue.add(seconds_between(begin_, answer.begun));
    metrics.seconds_of_prompt.add(seconds_between(answer.begun, choice.first));
    metrics.seconds_of_answer.add(seconds_between(choice.first, choice.last));
    metrics.tokens_of_prompt.add(static_cast<double>(job.tokens.size()));
    metrics.tokens_of_answer.add(static_cast<double>(answer.tokens.size()));
}

void TextAnswer::part(const TextJob& job, int64_t sample, const gpt::Completion& part) {
    const int64_t number = number_of(job, sample);
    count_part(choices_[static_cast<size_t>(number)], part);
    if (query_.streams) stream_part(job, number, part);
}

void TextAnswer::stream_part(const TextJob& job, int64_t number, const gpt::Completion& part) {
    Choice& choice = choices_[static_cast<size_t>(number)];
    const ordered_json logprobs = logprobs_of(job, part, choice.characters);
    std::string text = part.text;
    if (!query_.is_chat) {
        if (!choice.has_begun && query_.echoes)
            text.insert(0, service_.model().tokenizer().decode(job.tokens));
        choice.has_begun = true;
        choice.characters += count_code_points(text);
        if (!text.empty() || !logprobs.is_null()) stream_delta(number, text, logprobs, "");
        return;
    }
    if (!std::exchange(choice.has_begun, true))
        stream_delta(number, {{"role", "assistant"}, {"content", ""}}, nullptr, "");
    const gpt::ReasoningSplitter::Parts parts = choice.splitter.push(text);
    ordered_json delta = ordered_json::object();
    if (!parts.reasoning.empty()) delta["reasoning_content"] = parts.reasoning;
    // With tools only the whole answer shows what is a call.
    if (!parts.answer.empty() && job.prompt.tools.empty()) delta["content"] = parts.answer;
    if (!delta.empty() || !logprobs.is_null()) stream_delta(number, delta, logprobs, "");
}

void TextAnswer::stream_delta(int64_t number, const ordered_json& delta,
                              const ordered_json& logprobs, const std::string& reason) {
    const ordered_json none;
    const ordered_json choices =
        ordered_json::array({part_json(number, query_.is_chat, delta, logprobs, reason)});
    out_->add(event_text(head_, choices, query_.streams_usage ? &none : nullptr));
}

void TextAnswer::stream_end(const TextJob& job, int64_t number, const gpt::AnswerParts& parts,
                            const std::string& reason) {
    Choice& choice = choices_[static_cast<size_t>(number)];
    if (!query_.is_chat) return stream_delta(number, "", nullptr, reason);
    const gpt::ReasoningSplitter::Parts rest = choice.splitter.finish();
    ordered_json delta = ordered_json::object();
    if (!rest.reasoning.empty()) delta["reasoning_content"] = rest.reasoning;
    const std::string& text = job.prompt.tools.empty() ? rest.answer : parts.text;
    if (!text.empty()) delta["content"] = text;
    if (!delta.empty()) stream_delta(number, delta, nullptr, "");
    for (size_t i = 0; i < parts.tool_calls.size(); ++i) {
        ordered_json call = {{"index", i}};
        call.update(parts.tool_calls[i]);
        stream_delta(number, {{"tool_calls", ordered_json::array({call})}}, nullptr, "");
    }
    stream_delta(number, ordered_json::object(), nullptr, reason);
}

gpt::AnswerParts TextAnswer::parts_of(const TextJob& job, const gpt::Completion& answer) const {
    gpt::AnswerParts parts;
    if (!query_.is_chat) {
        if (query_.echoes) parts.text = service_.model().tokenizer().decode(job.tokens);
        parts.text += answer.text;
        return parts;
    }
    gpt::Prompt prompt = job.prompt;
    parts = answer_parts(prompt, answer, {.markers = service_.model().markers()});
    if (query_.one_call && parts.tool_calls.size() > 1)
        parts.tool_calls = ordered_json::array({parts.tool_calls[0]});
    return parts;
}

void TextAnswer::ended(const TextJob& job, int64_t sample, const gpt::Completion& answer) {
    const int64_t number = number_of(job, sample);
    const gpt::AnswerParts parts = parts_of(job, answer);
    const std::string reason = reason_of(answer, parts);
    usage_.generated += std::ssize(answer.tokens);
    if (sample == 0) usage_.cached += answer.cached_tokens;
    TextMetrics& metrics = service_.metrics();
    if (sample == 0) metrics.cached_tokens += static_cast<uint64_t>(answer.cached_tokens);
    count_end(choices_[static_cast<size_t>(number)], job, answer);
    ++metrics.finished[reason];
    if (query_.streams)
        stream_end(job, number, parts, reason);
    else
        choices_[static_cast<size_t>(number)].json =
            choice_json(head_, number, parts, all_logprobs(job, answer), reason);
    if (--left_ == 0) finish();
}

void TextAnswer::finish() {
    if (!query_.streams) {
        ordered_json choices = ordered_json::array();
        for (Choice& choice : choices_) choices.push_back(std::move(choice.json));
        return out_->send({.body = answer_text(head_, choices, usage_)});
    }
    if (query_.streams_usage) {
        const ordered_json usage = usage_json(usage_);
        out_->add(event_text(head_, ordered_json::array(), &usage));
    }
    out_->add(kLastEvent);
    out_->end();
}

void TextAnswer::failed(const WebError& why) {
    cancel();
    if (why.status >= 500) ++service_.metrics().failed;
    if (prepared_ == jobs_.size() && query_.streams) {
        out_->add(event_of(error_json(why)));
        return out_->end();
    }
    out_->send(error_response(why));
}

}  // namespace hark::serve
