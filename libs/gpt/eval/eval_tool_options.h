// The command line of gpt-eval.
#pragma once

#include <string>

#include "gpt/eval/eval_task.h"
#include "gpt/families/model_choice.h"
#include "kernels/runtime/backend.h"

namespace hark::gpt {

struct EvalToolOptions {
    ModelChoice choice;
    std::string against;
    std::string task = "perplexity", input_format = "jsonl", format = "text";
    int64_t context = 0;
    ComputeOptions compute;

    void flags(Flags& flags);
    void check() const;  // throws UsageError
    // Throws Error beginning with `where` if stdin, whose first line this is, has not
    // --input-format. Returns false if the line is blank, so that the next one decides.
    bool check_first(const std::string& line, const std::string& where) const;
    // A line as an object: parsed, or with --input-format text the text of one. Throws Error if it
    // is no object.
    nlohmann::json parse(const std::string& line) const;
    // The measures in --format.
    std::string report(const std::vector<Measure>& measures) const;
};

}  // namespace hark::gpt
