// What gpt-eval measures: a task takes lines of JSON, one after another, and has measures at the
// end.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/json/json.h"
#include "gpt/engine/model_rows.h"
#include "text/tokenizer.h"

namespace hark::gpt {

struct Measure {
    std::string name;  // lm-eval's where it has one
    double value = 0;
    std::optional<double> standard_error;
    bool is_count = false;
};

class EvalTask {
  public:
    virtual ~EvalTask() = default;
    // Takes a line. Throws Error, and leaves it out, if something is wrong with it.
    virtual void add(const nlohmann::json& line) = 0;
    // Computes what was taken, if that is enough for a pass. Call it after each line.
    virtual void compute_if_full() = 0;
    // Computes what is left. Call it once, after the last line.
    virtual void finish() = 0;
    // Texts or questions that were taken.
    virtual int64_t count() const = 0;
    virtual std::vector<Measure> measures() const = 0;
};

// What the tasks compute with; holds references.
struct EvalModels {
    Context& ctx;
    const Tokenizer& tokenizer;
    ModelRows& model;
    ModelRows* reference;  // null: none
    int64_t positions;     // of a window, and of a question with one choice
};
// The same with windows of `context` tokens; 0: as many as the model has positions. Throws Error if
// a model has fewer, or a smaller vocabulary than the tokenizer.
EvalModels eval_models(Context& ctx, const Tokenizer& tokenizer, ModelRows& model,
                       ModelRows* reference, int64_t context);

// perplexity, or one of question_tasks(). With a reference perplexity compares with it too.
std::unique_ptr<EvalTask> make_eval_task(const std::string& name, const EvalModels& models);

}  // namespace hark::gpt
