// Answers many prompts at once.
//
//     PromptSource -> PromptAnswers::ask -> Engine -> AnswerText -> PromptAnswers::end
#pragma once

#include <deque>
#include <map>
#include <memory>

#include "gpt/answers/prompt_answers.h"
#include "gpt/answers/prompt_queue.h"

namespace hark::gpt {

class Engine;
struct EngineToken;

struct BatchAnswererOptions {
    bool unordered = false;  // answers are written as they end, else in the order of the prompts
    // Prompts are begun when they have come. Else each waits for the one that follows it, so that
    // what is computed together does not depend on when prompts come.
    bool takes_what_has_come = false;
};

class BatchAnswerer {
  public:
    // The references must outlive it.
    BatchAnswerer(PromptAnswers& answers, AnswerPlanner& planner, Engine& engine,
                  const BatchAnswererOptions& options);

    // Answers all prompts of the source. Ctrl-C (core/cli/ending_signal.h) ends the answers.
    void run(PromptSource& prompts);
    // Answers one prompt.
    void answer(Prompt prompt);

  private:
    // A prompt, and those of its answers that have been begun.
    struct Sample {
        GenerateOptions options;
        std::unique_ptr<AnswerText> text;  // none of an empty prompt
        uint64_t id = 0;                   // the engine's
        bool has_ended = false;
        size_t written = 0;  // bytes of the text that have been written
    };
    struct Job {
        Prompt prompt;
        std::vector<Sample> samples;
        size_t current = 0;    // the sample that is written next, or is being written
        bool is_open = false;  // the current sample's text has begun
    };

    bool admit(PromptSource& prompts);
    void begin(Prompt prompt);
    void step();
    void take(EngineToken token);
    void end_sample(Sample& sample);
    // Writes the text that a job's answers have; returns whether all have ended.
    bool write(Job& job);
    void write_ready();

    PromptAnswers& answers_;
    AnswerPlanner& planner_;
    Engine& engine_;
    BatchAnswererOptions options_;
    std::deque<std::unique_ptr<Job>> jobs_;              // in the order of the prompts
    std::map<uint64_t, std::pair<Job*, size_t>> texts_;  // the engine's: the sample
};

}  // namespace hark::gpt
