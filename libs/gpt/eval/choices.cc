#include "gpt/eval/choices.h"

#include <algorithm>

#include "core/error.h"

namespace hark::gpt {
namespace {

// Adds a question, one sequence per choice. A target inside the context is -1: it has no loss.
void add_choices(PackedRows& rows, const ChoiceQuestion& question, int64_t positions) {
    for (const std::vector<int32_t>& choice : question.choices) {
        std::vector<int32_t> ids = question.context;
        ids.insert(ids.end(), choice.begin(), choice.end());
        const auto begin =
            static_cast<size_t>(std::max<int64_t>(0, std::ssize(ids) - positions - 1));
        for (size_t i = begin; i + 1 < ids.size(); ++i)
            rows.push(ids[i], i + 1 < question.context.size() ? -1 : ids[i + 1]);
        rows.end_sequence();
    }
}

// The losses of the sequence that begins at row `first`.
ChoiceLoss loss_of(const PackedRows& rows, const std::vector<float>& losses, size_t first) {
    ChoiceLoss loss;
    for (size_t row = first; row < static_cast<size_t>(rows.end[first]); ++row) {
        if (rows.targets[row] < 0) continue;
        loss.sum += losses[row];
        ++loss.tokens;
    }
    return loss;
}

size_t place_of_least(const std::vector<double>& values) {
    return static_cast<size_t>(std::min_element(values.begin(), values.end()) - values.begin());
}

}  // namespace

int64_t ChoiceQuestion::rows() const {
    int64_t rows = 0;
    for (const std::vector<int32_t>& choice : choices)
        rows += std::ssize(context) + std::ssize(choice) - 1;
    return rows;
}

int64_t ChoiceQuestion::longest() const {
    int64_t longest = 0;
    for (const std::vector<int32_t>& choice : choices)
        longest = std::max(longest, std::ssize(context) + std::ssize(choice) - 1);
    return longest;
}

std::vector<std::vector<ChoiceLoss>> choice_losses(std::span<const ChoiceQuestion> questions,
                                                   int64_t rows, int64_t positions,
                                                   const RowLosses& losses) {
    std::vector<std::vector<ChoiceLoss>> all;
    while (all.size() < questions.size()) {
        size_t end = all.size();
        PackedRows packed;
        do add_choices(packed, questions[end++], positions);
        while (end < questions.size() && packed.size() + questions[end].rows() <= rows);
        const std::vector<float> found = losses(packed);
        for (size_t row = 0; all.size() < end;) {
            std::vector<ChoiceLoss>& of_one = all.emplace_back();
            for (size_t k = 0; k < questions[all.size() - 1].choices.size(); ++k) {
                of_one.push_back(loss_of(packed, found, row));
                row = static_cast<size_t>(packed.end[row]);
            }
        }
    }
    return all;
}

void ChoiceScores::add(const ChoiceQuestion& question, std::span<const ChoiceLoss> losses) {
    require(question.characters.size() == losses.size(),
            "internal error: a question without the lengths of its choices");
    std::vector<double> whole, per_character;
    for (size_t i = 0; i < losses.size(); ++i) {
        whole.push_back(losses[i].sum);
        per_character.push_back(losses[i].sum / static_cast<double>(question.characters[i]));
    }
    const auto label = static_cast<size_t>(question.label);
    acc.add(place_of_least(whole) == label);
    acc_norm.add(place_of_least(per_character) == label);
}

}  // namespace hark::gpt
