// The requests of one language model: prepared on one thread, computed on another.
//
//     ask() -> Worker: tokens, constraint -> EngineThread -> TextListener
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "serve/metrics.h"
#include "serve/text/engine_thread.h"
#include "serve/worker.h"

namespace hark::serve {

struct TextJob;
struct TextOrIds;

struct TextServiceOptions {
    std::string name;          // of the model, as requests give it
    int64_t most_waiting = 0;  // prompts that wait for a place in the engine
    double keep_seconds = 0;   // without requests, for which keys and values stay in memory
};

class TextService {
  public:
    using Post = std::function<void(std::function<void()>)>;

    // `post` runs a function on the server's thread; `broken` is told there that nothing can be
    // computed any more. The model must outlive it.
    TextService(TextModel& model, TextServiceOptions options, Post post,
                std::function<void(const std::string&)> broken);

    // Ends its threads, which have posted all that they tell then. Not while anybody asks.
    void stop();

    // The rest is for the server's thread.

    // For each request: throws WebError 429 if too many prompts wait.
    void check_room() const;
    // Answers prompts of one listener, which is told of them until they are cancelled. It is told
    // that each has been prepared before it is told anything else; if one cannot be, none is
    // answered.
    void ask(std::vector<std::shared_ptr<TextJob>> jobs);
    // Nothing more is told, and the engine is free of it before its next step.
    void cancel(const std::shared_ptr<TextJob>& job);

    struct Embedded {
        EngineThread::Vectors vectors;
        int64_t tokens = 0;
    };
    // Makes a vector per text. Throws WebError 429 as check_room() does, and 400 for
    // too many dimensions.
    void embed(std::vector<TextOrIds> texts, int64_t dimensions, std::function<void(Embedded)> use,
               std::function<void(WebError)> fail);
    // Runs work that may take its time next to the tokenizer, off the server's thread, then what it
    // returns on it; `refuse` if the work throws.
    void prepare(std::function<std::function<void()>()> work, std::function<void(WebError)> refuse);

    const std::string& name() const { return options_.name; }
    const TextModel& model() const { return model_; }
    TextMetrics& metrics() { return metrics_; }

  private:
    void prepare_jobs(const std::vector<std::shared_ptr<TextJob>>& jobs);
    void end(const std::shared_ptr<TextJob>& job);

    TextModel& model_;
    TextServiceOptions options_;
    Post post_;
    TextMetrics metrics_;
    int64_t embedding_ = 0;                                    // requests
    std::map<const TextJob*, std::shared_ptr<TextJob>> jobs_;  // that have not ended
    EngineThread engine_;
    Worker preparing_;
};

}  // namespace hark::serve
