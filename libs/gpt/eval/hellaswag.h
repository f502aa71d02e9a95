// HellaSwag (Zellers et al. 2019) and similar tests as files of tokens, for gpt-train.
// Source of the format: llm.c dev/data/data_common.py (write_evalfile: magic 20240522) and
// llmc/dataloader.h (EvalLoader).
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "gpt/eval/choices.h"

namespace hark::gpt {

class HellaSwag {
  public:
    // Throws Error with file, example, expected and found; also for an id outside `n_vocab` and for
    // an example longer than `n_positions`.
    HellaSwag(const std::filesystem::path& path, int64_t n_vocab, int64_t n_positions);
    // The same from bytes; `where` names them in messages.
    HellaSwag(std::string_view bytes, const std::string& where, int64_t n_vocab,
              int64_t n_positions);

    // Each has 4 choices.
    const std::vector<ChoiceQuestion>& examples() const { return examples_; }
    // Keeps the examples rank, rank + ranks, ...: one process's share.
    void keep_share(int rank, int ranks);

    // Per example, each completion's mean loss over its own tokens. A batch has examples of up to
    // `rows` rows in all.
    std::vector<std::vector<double>> losses(int64_t rows, const RowLosses& losses) const;
    // The number of examples whose right completion has the least mean loss (the first of equals)
    // in the result of losses(); and their share.
    int64_t right(const std::vector<std::vector<double>>& losses) const;
    double accuracy(const std::vector<std::vector<double>>& losses) const;

  private:
    std::vector<ChoiceQuestion> examples_;
    int64_t n_positions_;
};

}  // namespace hark::gpt
