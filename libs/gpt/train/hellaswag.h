// HellaSwag and its like in llm.c's evaluation format: contexts, each with completions of which one
// is right. Zellers et al. 2019.
// Source: llm.c dev/data/data_common.py (write_evalfile: magic 20240522) and llmc/dataloader.h
// (EvalLoader).
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "gpt/train/training.h"

namespace hark::gpt {

struct HellaSwagExample {
    std::vector<int32_t> context;
    std::vector<std::vector<int32_t>> completions;  // 4
    int64_t label = 0;                              // the right one

    int64_t rows() const;     // all of a context and its completion but the last token, four times
    int64_t longest() const;  // rows of one of the four
};

class HellaSwag {
  public:
    // Throws Error naming the file and the example: what was expected and what was found, an id
    // outside `n_vocab` and an example longer than `n_positions` included.
    HellaSwag(const std::filesystem::path& path, int64_t n_vocab, int64_t n_positions);
    // The same from bytes; `where` names them in messages.
    HellaSwag(std::string_view bytes, const std::string& where, int64_t n_vocab,
              int64_t n_positions);

    const std::vector<HellaSwagExample>& examples() const { return examples_; }
    // Leaves the examples rank, rank + ranks, ...: those of one of several processes.
    void keep_share(int rank, int ranks);

    // Of each example the completions' mean losses over their own tokens. Examples are computed
    // side by side as long as they have `rows` rows or fewer together. `tensor`, `config`,
    // `weights`: as compute_losses() takes them.
    std::vector<std::vector<double>> losses(Context& ctx, Communicator& tensor,
                                            const Config& config, const ModelTensors& weights,
                                            int64_t rows) const;
    // How many examples' right completion has the least mean loss (the first of equals), of
    // losses() as above; and their share.
    int64_t right(const std::vector<std::vector<double>>& losses) const;
    double accuracy(const std::vector<std::vector<double>>& losses) const;

  private:
    std::vector<HellaSwagExample> examples_;
};

}  // namespace hark::gpt
