#include "serve/text/engine_thread.h"

#include <algorithm>
#include <utility>

#include "core/profile/profile.h"
#include "gpt/answers/answer_text.h"
#include "gpt/answers/prompt_requests.h"
#include "serve/text/text_job.h"
#include "serve/text/text_model.h"

namespace hark::serve {
namespace {

// Where the samples of a job have come to, for the server's thread.
void tell_part(const std::shared_ptr<TextJob>& job, int64_t sample, const gpt::Completion& part) {
    const auto listener = job->listener.lock();
    if (listener && !job->is_cancelled) listener->part(*job, sample, part);
}

void tell_end(const std::shared_ptr<TextJob>& job, int64_t sample, const gpt::Completion& answer) {
    const auto listener = job->listener.lock();
    if (listener && !job->is_cancelled) listener->ended(*job, sample, answer);
}

// The answer from its token number `from` on, with the text that has been added.
gpt::Completion part_of(const gpt::Completion& answer, size_t from, std::string text) {
    gpt::Completion part{.text = std::move(text)};
    for (size_t i = from; i < answer.tokens.size(); ++i) {
        part.tokens.push_back(answer.tokens[i]);
        part.logprobs.push_back(answer.logprobs[i]);
        if (i < answer.likeliest.size()) part.likeliest.push_back(answer.likeliest[i]);
    }
    return part;
}

}  // namespace

EngineThread::EngineThread(TextModel& model, double keep_seconds, EngineEvents events)
    : model_(model),
      keep_seconds_(keep_seconds),
      events_(std::move(events)),
      calls_(model),
      thread_([this] { run(); }) {}

EngineThread::~EngineThread() { stop(); }

void EngineThread::stop() {
    queue_.close();
    if (thread_.joinable()) thread_.join();
}

void EngineThread::add(std::shared_ptr<TextJob> job) {
    queue_.add([this, job = std::move(job)] {
        if (!job->is_cancelled) begin(job);
    });
}

void EngineThread::end(std::shared_ptr<TextJob> job) {
    queue_.add([this, job = std::move(job)] { drop(*job); });
}

void EngineThread::embed(std::vector<std::vector<int32_t>> texts, int64_t dimensions,
                         TellVectors tell_vectors) {
    queue_.add([this, texts = std::move(texts), dimensions, tell_vectors] {
        Vectors vectors;
        std::optional<WebError> why;
        try {
            vectors = calls_.embed(texts, dimensions);
        } catch (const std::exception& failure) {
            if (calls_.is_fatal(failure)) throw;
            why = web_error_of(failure);
        }
        tell([tell_vectors, vectors, why] { tell_vectors(vectors, why); });
    });
}

std::optional<WorkQueue::Work> EngineThread::next_work(bool wait) {
    const ProfileSpan span(wait ? "wait.in" : nullptr);
    return queue_.take(wait);
}

void EngineThread::wait_for_work() {
    const ProfileSpan span("wait.in");
    if (queue_.wait(keep_seconds_)) return;
    model_.engine().give_memory_back();
    tell_counts();
    post_told();
}

void EngineThread::tell_counts() {
    tell([this, counts = model_.engine().counts()] { events_.counts(counts); });
}

void EngineThread::run() try {
    model_.use_on_this_thread();
    gpt::Engine& engine = model_.engine();
    while (true) {
        bool waits = engine.is_idle();
        if (waits) wait_for_work();
        while (const auto work = next_work(std::exchange(waits, false))) (*work)();
        if (queue_.is_closed()) return calls_.finish();
        for (gpt::EngineToken& token : calls_.step()) take(std::move(token));
        model_.count_scratch();
        tell_counts();
        post_told();
    }
} catch (const std::exception& failure) {
    events_.post([this, why = failure_text(failure)] { events_.broken(why); });
}

void EngineThread::score(const std::shared_ptr<TextJob>& job) {
    gpt::Completion prompt = calls_.score(job->tokens, job->options.logprobs.value_or(0));
    tell([job, prompt = std::move(prompt)] {
        const auto listener = job->listener.lock();
        if (listener && !job->is_cancelled) listener->scored(*job, prompt);
    });
}

void EngineThread::begin(const std::shared_ptr<TextJob>& job) {
    try {
        if (job->scores_prompt && job->options.logprobs) score(job);
        for (int64_t i = 0; i < job->options.samples; ++i) {
            auto text = model_.planner().begin(job->plan, job->tokens.size());
            const uint64_t id = calls_.add(*job, i);
            samples_[id] = {job, i, std::move(text)};
        }
    } catch (const std::exception& why) {
        if (calls_.is_fatal(why)) throw;
        drop(*job);
        fail_job(job, web_error_of(why, 400));
    }
}

void EngineThread::take(gpt::EngineToken token) {
    const auto found = samples_.find(token.id);
    if (found == samples_.end()) return;
    const auto job = found->second.job;
    try {
        if (token.is_out_of_memory) throw OutOfMemory(token.error);
        require(token.error.empty(), token.error);
        push(std::move(token), found->second);
    } catch (const std::exception& why) {
        drop(*job);
        fail_job(job, web_error_of(why));
    }
}

void EngineThread::push(gpt::EngineToken token, Sample& sample) {
    const auto& [job, number, text] = sample;
    gpt::Completion& answer = text->completion();
    if (token.is_first) {
        answer.cached_tokens = token.cached_tokens;
        answer.begun = token.begun;
    }
    const size_t before = answer.tokens.size();
    std::string added = text->push(std::move(token.sampled));
    const bool ends = token.is_last || text->has_ended();
    if (ends) added += text->finish();
    tell([job = job, number = number, part = part_of(answer, before, std::move(added))] {
        tell_part(job, number, part);
    });
    if (!ends) return;
    calls_.end(token.id);
    gpt::PromptRequests::is_whole(job->options, answer);
    tell([job = job, number = number, answer = std::move(answer)] {
        tell_end(job, number, answer);
    });
    const auto of = job;
    samples_.erase(token.id);
    const bool has_more = std::any_of(samples_.begin(), samples_.end(),
                                      [&](const auto& one) { return one.second.job == of; });
    if (!has_more) tell([this, of] { events_.over(of); });
}

void EngineThread::drop(const TextJob& job) {
    std::erase_if(samples_, [&](const auto& one) {
        if (one.second.job.get() != &job) return false;
        calls_.end(one.first);
        return true;
    });
}

void EngineThread::fail_job(const std::shared_ptr<TextJob>& job, WebError why) {
    tell([this, job, why] {
        const auto listener = job->listener.lock();
        const bool is_awaited = listener && !job->is_cancelled;
        events_.over(job);  // first: the listener's end is no cancellation
        if (is_awaited) listener->failed(why);
    });
}

void EngineThread::post_told() {
    events_.post([told = std::exchange(told_, {})] {
        for (const auto& event : told) event();
    });
}

}  // namespace hark::serve
