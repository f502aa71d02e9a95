// Whole texts through a model: the outputs of many rows at once, without sampling.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "core/tensor.h"
#include "gpt/engine/packed_rows.h"

namespace hark {
struct Context;
class KvCache;
}  // namespace hark

namespace hark::gpt {

struct Model;

class ModelRows {
  public:
    // Passes have up to `most_rows` rows; 0: 512, on a GPU 2048. Holds references.
    ModelRows(Context& ctx, const Model& model, int64_t most_rows = 0);
    ~ModelRows();

    // Told the numbers of rows, ascending, and the final norm's outputs (n, C) at them, on the
    // context's device and in its arena.
    using UseStates = std::function<void(std::span<const int32_t> rows, Tensor states)>;
    // Runs all sequences; `use` is called with those rows whose target is not -1. Throws Error for
    // a sequence that is longer than the model's context.
    void states(const PackedRows& rows, const UseStates& use);
    // -log p(target), natural, of each row; 0 where the target is -1.
    std::vector<float> losses(const PackedRows& rows);

    const Model& model() const { return model_; }

  private:
    // Where the sequences end that run together, from row `begin` on.
    int64_t group_end(const PackedRows& rows, int64_t begin) const;
    void make_cache(int64_t sequences, int64_t longest);
    void run_group(const PackedRows& rows, int64_t begin, int64_t end, const UseStates& use);
    void run_pass(const PackedRows& rows, int64_t begin, int64_t end, int64_t group,
                  const UseStates& use);

    Context& ctx_;
    const Model& model_;
    int64_t most_rows_;
    std::unique_ptr<KvCache> cache_;
    int64_t slots_ = 0;                 // of cache_
    std::vector<int32_t> slot_of_row_;  // of the group that runs, from its first row
};

// Rows whose logits, of `columns` tokens, are in memory at the same time; `rows` at most.
int64_t logits_at_once(const Context& ctx, int64_t columns, int64_t rows);

// Calls use(begin, logits (n, V) f32) for the states (n, C), part after part: the logits of all
// rows at once would take too much memory.
void for_logits(Context& ctx, const Model& model, Tensor states,
                const std::function<void(int64_t begin, Tensor logits)>& use);

}  // namespace hark::gpt
