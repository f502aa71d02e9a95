// What /metrics tells, in Prometheus' text format. All for the server's thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/profile/metrics_text.h"
#include "gpt/engine/engine.h"

namespace hark::serve {

// Counts of values up to bounds.
class Histogram {
  public:
    explicit Histogram(std::vector<double> bounds)
        : bounds_(std::move(bounds)), counts_(bounds_.size() + 1) {}

    void add(double value);
    void write(const std::string& name, MetricsText& out) const;

  private:
    std::vector<double> bounds_;
    std::vector<uint64_t> counts_;  // between the bounds, and above
    double sum_ = 0;
};

// Of one language model, under hark_ and vLLM's names.
struct TextMetrics {
    gpt::EngineCounts engine;
    int64_t preparing = 0;  // requests that the engine does not have yet
    uint64_t prompt_tokens = 0, cached_tokens = 0, generated_tokens = 0, cancelled = 0, failed = 0;
    std::map<std::string, uint64_t> finished;  // answers by their reason
    Histogram seconds_to_first_token{{0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60}};
    Histogram seconds_between_tokens{{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1}};
    // Of each answer: from its request to its end; before the engine has it, from then to its first
    // token, and from that to the last one; tokens.
    Histogram seconds_in_all{request_seconds()}, seconds_in_queue{request_seconds()},
        seconds_of_prompt{request_seconds()}, seconds_of_answer{request_seconds()};
    Histogram tokens_of_prompt{request_tokens()}, tokens_of_answer{request_tokens()};

    void write(MetricsText& out) const;

  private:
    static std::vector<double> request_seconds() {
        return {0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600};
    }
    static std::vector<double> request_tokens() {
        return {1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000, 100000};
    }
};

// Of one speech model.
struct AudioMetrics {
    int64_t running = 0, waiting = 0;  // recordings
    int64_t live = 0;                  // sessions
    uint64_t finished = 0, failed = 0;
    double audio_seconds = 0, busy_seconds = 0;  // transcribed, and what that took

    void write(MetricsText& out) const;
};

}  // namespace hark::serve
