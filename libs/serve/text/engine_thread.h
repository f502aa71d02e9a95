// The thread on which a language model computes all its answers.
//
//     add() -> ModelCalls: gpt::Engine -> gpt::AnswerText -> the server's thread: TextListener
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "serve/text/model_calls.h"
#include "serve/web/web_error.h"
#include "serve/worker.h"

namespace hark::gpt {
class AnswerText;
}

namespace hark::serve {

struct TextJob;
class TextModel;

// What the thread tells, on its own: of many events at once.
struct EngineEvents {
    // Runs the function on the server's thread.
    std::function<void(std::function<void()>)> post;
    // On the server's thread: the counts after a step; the engine cannot compute any more, and why.
    std::function<void(const gpt::EngineCounts&)> counts;
    std::function<void(const std::string&)> broken;
    // On the server's thread: the job has no samples any more.
    std::function<void(const std::shared_ptr<TextJob>&)> over;
};

class EngineThread {
  public:
    // The model must outlive it. After `keep_seconds` without work the memory of its keys and
    // values is given back.
    EngineThread(TextModel& model, double keep_seconds, EngineEvents events);
    ~EngineThread();
    EngineThread(const EngineThread&) = delete;

    // Ends the thread; all that it tells has been posted then. What has not ended is dropped.
    void stop();

    // All from any thread; each takes effect before the engine's next step.

    // Computes a prepared job's answers, unless it is cancelled.
    void add(std::shared_ptr<TextJob> job);
    // Ends its answers.
    void end(std::shared_ptr<TextJob> job);
    // Makes vectors, then tells them, or why there are none, on the server's thread.
    using Vectors = std::vector<std::vector<float>>;
    using TellVectors = std::function<void(Vectors vectors, const std::optional<WebError>& why)>;
    void embed(std::vector<std::vector<int32_t>> texts, int64_t dimensions, TellVectors tell);

  private:
    struct Sample {
        std::shared_ptr<TextJob> job;
        int64_t number = 0;
        std::unique_ptr<gpt::AnswerText> text;
    };

    void run();
    void wait_for_work();
    void tell_counts();
    std::optional<WorkQueue::Work> next_work(bool wait);
    void begin(const std::shared_ptr<TextJob>& job);
    void score(const std::shared_ptr<TextJob>& job);
    void take(gpt::EngineToken token);
    void push(gpt::EngineToken token, Sample& sample);
    void drop(const TextJob& job);
    void fail_job(const std::shared_ptr<TextJob>& job, WebError why);
    void tell(std::function<void()> event) { told_.push_back(std::move(event)); }
    void post_told();

    TextModel& model_;
    double keep_seconds_;
    EngineEvents events_;
    ModelCalls calls_;
    WorkQueue queue_;
    std::map<uint64_t, Sample> samples_;  // by the engine's number
    std::vector<std::function<void()>> told_;
    std::thread thread_;
};

}  // namespace hark::serve
