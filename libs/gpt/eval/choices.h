// Multiple choice: a context with several continuations, one of them right, scored by the loss of
// each. gpt-eval scores a loaded model, gpt-train the one that it trains.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "gpt/engine/packed_rows.h"
#include "gpt/eval/mean.h"

namespace hark::gpt {

// The losses of rows: -log p(target), natural; 0 for those without a target.
using RowLosses = std::function<std::vector<float>(PackedRows& rows)>;

struct ChoiceQuestion {
    std::vector<int32_t> context;
    std::vector<std::vector<int32_t>> choices;
    std::vector<int64_t> characters;  // of each choice's text; empty: not known
    int64_t label = 0;                // the right one

    int64_t rows() const;     // of all: context and choice without the last token
    int64_t longest() const;  // rows of the longest of them
};

// A choice's loss over its own tokens.
struct ChoiceLoss {
    double sum = 0;
    int64_t tokens = 0;

    double mean() const { return sum / static_cast<double>(tokens); }
};

// Per question, the loss of each choice. A batch has questions of up to `rows` rows in all. A
// context is cut from the left if it and a choice have more than `positions` rows.
std::vector<std::vector<ChoiceLoss>> choice_losses(std::span<const ChoiceQuestion> questions,
                                                   int64_t rows, int64_t positions,
                                                   const RowLosses& losses);

// Counts right answers: the choice of the least loss, the first of equals. Source of the names:
// lm-eval's multiple_choice (EleutherAI/lm-evaluation-harness lm_eval/api/task.py).
struct ChoiceScores {
    Mean acc;       // by the whole loss
    Mean acc_norm;  // by the loss per character

    void add(const ChoiceQuestion& question, std::span<const ChoiceLoss> losses);
};

}  // namespace hark::gpt
