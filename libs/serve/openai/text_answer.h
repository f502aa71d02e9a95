// From the answers of a language model to the answer of a request: whole, or as server-sent events.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "serve/models/served_model.h"
#include "serve/openai/answer_json.h"
#include "serve/openai/requests.h"
#include "serve/web/message.h"

namespace hark::serve {

class TextService;

class TextAnswer : public TextListener, public std::enable_shared_from_this<TextAnswer> {
  public:
    // Asks the service for what the query wants, and answers. Throws WebError if it cannot begin.
    // The answer holds the lease of the service's model.
    static void start(TextService& service, ModelLease lease, TextQuery query,
                      std::shared_ptr<WebAnswer> out);

    TextAnswer(TextService& service, ModelLease lease, TextQuery query,
               std::shared_ptr<WebAnswer> out);

    void prepared(const TextJob& job) override;
    void scored(const TextJob& job, const gpt::Completion& prompt) override;
    void part(const TextJob& job, int64_t sample, const gpt::Completion& part) override;
    void ended(const TextJob& job, int64_t sample, const gpt::Completion& answer) override;
    void failed(const WebError& why) override;

  private:
    using Clock = std::chrono::steady_clock;
    // One of the answers. They are numbered prompt by prompt.
    struct Choice {
        gpt::ReasoningSplitter splitter{nullptr, false};
        Clock::time_point first, last;  // token
        int64_t tokens = 0;
        size_t characters = 0;        // that have been streamed
        bool has_begun = false;       // its first event has been sent
        nlohmann::ordered_json json;  // once it has ended, unless it is streamed
    };

    void ask();
    void cancel();
    int64_t number_of(const TextJob& job, int64_t sample) const;
    // The log probabilities of a part, or null.
    nlohmann::ordered_json logprobs_of(const TextJob& job, const gpt::Completion& part,
                                       size_t offset) const;
    // Those of a whole answer, after those of its prompt if it was scored.
    nlohmann::ordered_json all_logprobs(const TextJob& job, const gpt::Completion& answer) const;
    void count_part(Choice& choice, const gpt::Completion& part);
    void count_end(const Choice& choice, const TextJob& job, const gpt::Completion& answer);
    void stream_part(const TextJob& job, int64_t number, const gpt::Completion& part);
    void stream_delta(int64_t number, const nlohmann::ordered_json& delta,
                      const nlohmann::ordered_json& logprobs, const std::string& reason);
    void stream_end(const TextJob& job, int64_t number, const gpt::AnswerParts& parts,
                    const std::string& reason);
    void finish();
    // What is left once the model has ended: reasoning and calls of tools apart.
    gpt::AnswerParts parts_of(const TextJob& job, const gpt::Completion& answer) const;

    TextService& service_;
    ModelLease lease_;
    TextQuery query_;
    std::shared_ptr<WebAnswer> out_;
    AnswerHead head_;
    Clock::time_point begin_ = Clock::now();
    std::vector<std::shared_ptr<TextJob>> jobs_;  // a prompt each
    std::map<int64_t, gpt::Completion> scored_;   // prompts by their number
    size_t prepared_ = 0;
    int64_t left_ = 0;  // answers that have not ended
    std::vector<Choice> choices_;
    TokenUsage usage_;
};

}  // namespace hark::serve
