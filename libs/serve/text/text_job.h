// What is asked of a language model, and what is told of its answers.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gpt/answers/answer_plan.h"
#include "gpt/answers/prompts.h"
#include "serve/web/web_error.h"

namespace hark::serve {

// A text, or its tokens.
struct TextOrIds {
    std::string text;
    std::optional<std::vector<int32_t>> ids;
};

struct TextJob;

// Told of a prompt's answers, on the server's thread.
class TextListener {
  public:
    virtual ~TextListener() = default;

    // Before anything else of this and of the request's other prompts: the prompt has been read.
    virtual void prepared(const TextJob& job) = 0;
    // Before the answers, if the job asks for it: the prompt's tokens, as TextModel::score() has
    // them.
    virtual void scored(const TextJob& job, const gpt::Completion& prompt) = 0;
    // The next part of a sample's answer: text that is certain by now, and its tokens. Either may
    // be empty.
    virtual void part(const TextJob& job, int64_t sample, const gpt::Completion& part) = 0;
    virtual void ended(const TextJob& job, int64_t sample, const gpt::Completion& answer) = 0;
    // Instead of what has not been told: why there is no answer, or no more of it.
    virtual void failed(const WebError& why) = 0;
};

// Set by whoever asks, then by the service's preparing; from then on it does not change.
struct TextJob {
    // The request's.
    gpt::Prompt prompt;
    bool is_chat = false;
    std::optional<std::vector<int32_t>> ids;  // the prompt's tokens, where they are given
    int64_t max_tokens = 0;  // of an answer, if the request does not say; 0: what fits the context
    bool scores_prompt = false;  // with the log probabilities that the settings ask for
    int64_t index = 0;       // among the request's prompts
    std::weak_ptr<TextListener> listener;
    // What it comes to.
    std::vector<int32_t> tokens;
    gpt::GenerateOptions options;
    gpt::AnswerPlan plan;
    gpt::SamplerOptions sampler;

    std::atomic<bool> is_cancelled = false;
};

}  // namespace hark::serve
