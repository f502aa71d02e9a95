#include "serve/text/text_service.h"

#include <utility>

#include "core/profile/profile.h"
#include "gpt/answers/prompt_requests.h"
#include "serve/text/text_job.h"
#include "serve/text/text_model.h"

namespace hark::serve {
namespace {

// The service's own words for what is too long: it has no flags to name.
WebError too_long(const TextJob& job, int64_t prompt, int64_t answer, int64_t context) {
    return WebError(400,
                    concat("the model's context has ", context, " tokens; the prompt has ", prompt,
                           answer > 0 ? concat(" and the answer may have ", answer) : std::string(),
                           "; shorten the prompt", answer > 0 ? " or max_tokens" : ""),
                    job.is_chat ? "messages" : "prompt", "context_length_exceeded");
}

// What becomes of the job: its tokens, options and plan. Throws WebError.
void make_plan(TextModel& model, TextJob& job) {
    gpt::PromptRequests* const requests = job.is_chat ? model.chats() : &model.texts();
    if (!requests)
        throw WebError(400, "the model has no chat template; use /v1/completions", "model");
    if (!job.prompt.tools.empty() && !model.takes_tools())
        throw WebError(400, "the model's chat template takes no tools", "tools");
    gpt::AnswerPlanner& planner = model.planner();
    if (job.ids) model.check_tokens(*job.ids, "prompt");
    auto [tokens, options] =
        job.ids ? requests->ask(job.prompt, *job.ids) : requests->ask(job.prompt);
    const auto n = std::ssize(tokens);
    if (job.prompt.error_code == "context_length_exceeded")
        throw too_long(job, n, options.max_tokens, planner.context());
    if (!job.prompt.error.empty()) throw WebError(400, job.prompt.error, "", job.prompt.error_code);
    if (tokens.empty()) throw WebError(400, "the prompt has no tokens", "prompt");
    // The last token of an answer needs no place.
    const int64_t room = planner.context() - n + 1;
    if (options.max_tokens == 0)
        options.max_tokens = job.max_tokens > 0 ? std::min(job.max_tokens, room) : room;
    job.plan = planner.plan(tokens.size(), options);
    try {
        job.sampler = planner.sampler(options);
    } catch (const Error& why) {
        throw WebError(400, why.what(), "logit_bias");
    }
    job.tokens = std::move(tokens);
    job.options = std::move(options);
}

// Throws WebError 400 for a text that cannot be embedded.
std::vector<int32_t> tokens_to_embed(const TextModel& model, const TextOrIds& one) {
    gpt::Prompt text;
    text.text = one.text;
    std::vector<int32_t> ids =
        one.ids ? *one.ids : gpt::embed_tokens(model.tokenizer(), model.embed_options(), text);
    const int64_t longest = model.embed_options().longest;
    if (text.error_code == "context_length_exceeded" || std::ssize(ids) > longest)
        throw WebError(400,
                       concat("input: a text is too long; the model takes ", longest, " tokens"),
                       "input", "context_length_exceeded");
    if (ids.empty()) throw WebError(400, "input: a text has no tokens", "input");
    model.check_tokens(ids, "input");
    return ids;
}

}  // namespace

TextService::TextService(TextModel& model, TextServiceOptions options, Post post,
                         std::function<void(const std::string&)> broken)
    : model_(model),
      options_(std::move(options)),
      post_(post),
      engine_(model, options_.keep_seconds,
              {.post = post,
               .counts = [this](const auto& counts) { metrics_.engine = counts; },
               .broken = std::move(broken),
               .over = [this](const auto& job) { end(job); }}) {}

void TextService::stop() {
    preparing_.stop();
    engine_.stop();
}

void TextService::check_room() const {
    const int64_t most = model_.engine().max_sequences() + options_.most_waiting;
    if (std::ssize(jobs_) + embedding_ >= most)
        throw WebError(429, "too many requests wait; try again later", "", "rate_limit_exceeded");
}

void TextService::ask(std::vector<std::shared_ptr<TextJob>> jobs) {
    for (const auto& job : jobs) jobs_[job.get()] = job;
    metrics_.preparing += std::ssize(jobs);
    preparing_.add([this, jobs = std::move(jobs)] { prepare_jobs(jobs); });
}

void TextService::prepare_jobs(const std::vector<std::shared_ptr<TextJob>>& jobs) {
    std::optional<WebError> why;
    try {
        const ProfileSpan span("tokenize");
        for (const auto& job : jobs)
            if (!job->is_cancelled) make_plan(model_, *job);
    } catch (const std::exception& wrong) {
        why = web_error_of(wrong, 400);
    }
    post_([this, jobs, why] {
        metrics_.preparing -= std::ssize(jobs);
        const auto listener = jobs[0]->listener.lock();
        if (jobs[0]->is_cancelled || !listener || why) {
            for (const auto& job : jobs) end(job);
            if (listener && !jobs[0]->is_cancelled) listener->failed(*why);
            return;
        }
        for (const auto& job : jobs) {
            metrics_.prompt_tokens += job->tokens.size();
            listener->prepared(*job);
        }
        for (const auto& job : jobs) engine_.add(job);
    });
}

void TextService::cancel(const std::shared_ptr<TextJob>& job) {
    if (!jobs_.contains(job.get())) return;
    job->is_cancelled = true;
    ++metrics_.cancelled;
    engine_.end(job);
    end(job);
}

void TextService::end(const std::shared_ptr<TextJob>& job) { jobs_.erase(job.get()); }

void TextService::prepare(std::function<std::function<void()>()> work,
                          std::function<void(WebError)> refuse) {
    preparing_.add([this, work = std::move(work), refuse = std::move(refuse)] {
        try {
            post_(work());
        } catch (const std::exception& failure) {
            post_([refuse, why = web_error_of(failure)] { refuse(why); });
        }
    });
}

void TextService::embed(std::vector<TextOrIds> texts, int64_t dimensions,
                        std::function<void(Embedded)> use, std::function<void(WebError)> refuse) {
    check_room();
    if (dimensions > model_.dimensions())
        throw WebError(
            400, concat("dimensions: the model has ", model_.dimensions(), ", found ", dimensions),
            "dimensions");
    ++embedding_;
    const auto end_with = [this, refuse](const WebError& why) {
        --embedding_;
        refuse(why);
    };
    preparing_.add([this, texts = std::move(texts), dimensions, use, end_with] {
        std::vector<std::vector<int32_t>> ids;
        int64_t tokens = 0;
        try {
            const ProfileSpan span("tokenize");
            for (const TextOrIds& one : texts) {
                ids.push_back(tokens_to_embed(model_, one));
                tokens += std::ssize(ids.back());
            }
        } catch (const std::exception& failure) {
            return post_([end_with, why = web_error_of(failure, 400)] { end_with(why); });
        }
        engine_.embed(std::move(ids), dimensions,
                      [this, use, end_with, tokens](EngineThread::Vectors vectors,
                                                    const std::optional<WebError>& why) {
                          if (why) return end_with(*why);
                          --embedding_;
                          metrics_.prompt_tokens += static_cast<uint64_t>(tokens);
                          use({std::move(vectors), tokens});
                      });
    });
}

}  // namespace hark::serve
