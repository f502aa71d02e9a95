// What the thread of a language model has its engine do. If several processes compute the model,
// the first one tells the others each call, and they do the same.
//
//     rank 0: ModelCalls -> the ranks' links -> follow_calls() of the others
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <span>
#include <vector>

#include "core/json/json.h"
#include "gpt/engine/engine.h"

namespace hark::gpt {
struct Completion;
}

namespace hark::serve {

struct TextJob;
class TextModel;

// The numbers of the options, in an order of their own, and those options again; without the
// constraint.
nlohmann::json sampler_json(const gpt::SamplerOptions& options);
gpt::SamplerOptions sampler_of(const nlohmann::json& numbers);

// For one thread. All functions throw what those of the engine and of the model do, and Error if
// another process has ended.
class ModelCalls {
  public:
    // Keeps the reference.
    explicit ModelCalls(TextModel& model);

    // Whether the run must end with the failure of a call, which the others may not have seen.
    bool is_fatal(const std::exception& why) const;

    // Of gpt::Engine. A prepared job's sample.
    uint64_t add(const TextJob& job, int64_t sample);
    void end(uint64_t id);
    std::vector<gpt::EngineToken> step();
    // Of TextModel.
    std::vector<std::vector<float>> embed(const std::vector<std::vector<int32_t>>& texts,
                                          int64_t dimensions);
    gpt::Completion score(const std::vector<int32_t>& tokens, int64_t likeliest);
    // There are no more calls: the others leave follow_calls().
    void finish();

  private:
    void tell(const std::function<nlohmann::json()>& call);
    void send();

    TextModel& model_;
    bool is_alone_;
    nlohmann::json told_ = nlohmann::json::array();
};

// Does what rank 0's ModelCalls does, until its finish(). Throws Error if rank 0 has ended.
void follow_calls(TextModel& model);

}  // namespace hark::serve
