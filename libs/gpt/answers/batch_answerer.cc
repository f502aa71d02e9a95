#include "gpt/answers/batch_answerer.h"

#include <algorithm>
#include <utility>

#include "core/cli/ending_signal.h"
#include "core/error.h"
#include "gpt/engine/engine.h"

namespace hark::gpt {
namespace {

// Jobs in memory per sequence of the engine: answers that have ended wait for earlier ones.
constexpr int64_t kJobsPerSequence = 8;

}  // namespace

BatchAnswerer::BatchAnswerer(PromptAnswers& answers, AnswerPlanner& planner, Engine& engine,
                             const BatchAnswererOptions& options)
    : answers_(answers), planner_(planner), engine_(engine), options_(options) {}

void BatchAnswerer::run(PromptSource& prompts) {
    while (true) {
        while (admit(prompts)) continue;
        write_ready();
        if (engine_.is_idle()) {
            if (jobs_.empty() && prompts.has_ended()) return;
            continue;
        }
        step();
    }
}

void BatchAnswerer::answer(Prompt prompt) {
    begin(std::move(prompt));
    write_ready();
    while (!engine_.is_idle()) step();
}

void BatchAnswerer::step() {
    for (EngineToken& token : engine_.step()) take(std::move(token));
    if (interrupted())
        while (!texts_.empty()) {
            const auto [job, number] = texts_.begin()->second;
            job->samples[number].text->end(Finish::stop);
            end_sample(job->samples[number]);
        }
    write_ready();
}

bool BatchAnswerer::admit(PromptSource& prompts) {
    const int64_t room = engine_.max_sequences();
    if (std::ssize(texts_) >= room || std::ssize(jobs_) >= kJobsPerSequence * room) return false;
    const bool wait = engine_.is_idle() || !options_.takes_what_has_come;
    std::optional<Prompt> next = prompts.take(wait);
    if (!next) return false;
    begin(std::move(*next));
    return true;
}

void BatchAnswerer::begin(Prompt prompt) {
    auto job = std::make_unique<Job>();
    job->prompt = std::move(prompt);
    const auto [ids, options] = answers_.ask(job->prompt);
    for (int64_t i = 0; i < options.samples && job->prompt.error.empty(); ++i) {
        Sample& sample = job->samples.emplace_back();
        sample.options = PromptRequests::of_sample(options, i);
        sample.has_ended = ids.empty();
        if (ids.empty()) continue;
        const AnswerPlan plan = planner_.plan(ids.size(), sample.options);
        sample.text = planner_.begin(plan, ids.size());
        try {
            sample.id = engine_.add({.prompt = ids,
                                     .sampler = planner_.sampler(sample.options),
                                     .seed = static_cast<uint64_t>(sample.options.seed),
                                     .max_tokens = plan.max_tokens,
                                     .likeliest = sample.options.logprobs.value_or(0)});
            texts_[sample.id] = {job.get(), job->samples.size() - 1};
        } catch (const Error& why) {
            sample.text->completion().error = why.what();
            sample.has_ended = true;
        }
    }
    jobs_.push_back(std::move(job));
}

void BatchAnswerer::take(EngineToken token) {
    const auto found = texts_.find(token.id);
    if (found == texts_.end()) return;
    const auto [job, number] = found->second;
    Sample& sample = job->samples[number];
    Completion& answer = sample.text->completion();
    if (token.is_first) answer.cached_tokens = token.cached_tokens;
    answer.drafts = token.drafts;
    answer.accepted = token.accepted;
    answer.error = std::move(token.error);
    if (answer.error.empty()) sample.text->push(std::move(token.sampled));
    if (token.is_last || sample.text->has_ended() || !answer.error.empty()) end_sample(sample);
}

void BatchAnswerer::end_sample(Sample& sample) {
    engine_.end(sample.id);
    texts_.erase(sample.id);
    sample.text->finish();
    sample.has_ended = true;
}

bool BatchAnswerer::write(Job& job) {
    AnswerWriter& writer = answers_.writer();
    for (; job.prompt.error.empty() && job.current < job.samples.size(); ++job.current) {
        Sample& sample = job.samples[job.current];
        if (!std::exchange(job.is_open, true)) writer.begin(job.prompt);
        if (sample.text) {
            const std::string& text = sample.text->completion().text;
            if (sample.written < text.size())
                writer.text(std::string_view(text).substr(sample.written));
            sample.written = text.size();
        }
        if (!sample.has_ended) return false;
        Completion empty;
        answers_.end(job.prompt, static_cast<int64_t>(job.current),
                     sample.text ? sample.text->completion() : empty, sample.options);
        job.is_open = false;
    }
    if (job.prompt.error.empty()) return true;
    for (Sample& sample : job.samples)
        if (!sample.has_ended) end_sample(sample);
    writer.fail(job.prompt);
    return true;
}

void BatchAnswerer::write_ready() {
    if (!options_.unordered) {
        while (!jobs_.empty() && write(*jobs_.front())) jobs_.pop_front();
        return;
    }
    std::erase_if(jobs_, [&](const std::unique_ptr<Job>& job) {
        const bool is_done = std::all_of(job->samples.begin(), job->samples.end(),
                                         [](const Sample& sample) { return sample.has_ended; });
        return is_done && write(*job);
    });
}

}  // namespace hark::gpt
