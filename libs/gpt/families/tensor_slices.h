// One of several processes' slice of a model, whose layers they compute together: its heads, and
// its hidden channels of each MLP.
//
//     q, k, v, gate, up      rows: a product's outputs                 of heads, of channels
//     attention's out, down  columns: a product's inputs; the processes' results are added up
//     lm_head                rows: the logits of some tokens
//     all other tensors      whole; biases of sums are the first process's, and zeros elsewhere
//
// Source: Shoeybi et al. 2019 (Megatron-LM), section 3.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "gpt/families/tensor_spec.h"

namespace hark::gpt {

// Elements of a vector, rows or columns of a matrix.
struct Range {
    int64_t begin = 0, end = 0;
    int64_t size() const { return end - begin; }
    Range within(const Range& other) const {  // the intersection
        return {std::clamp(other.begin, begin, end), std::clamp(other.end, begin, end)};
    }
};

// How processes share a tensor: along its rows or columns, in sections. Each process has an equal
// share of each section's units, of `width` rows or columns each. Fewer units than processes: each
// unit is on several.
struct TensorSplit {
    enum class Along { nothing, rows, columns } along = Along::nothing;
    struct Section {
        int64_t first = 0, units = 0, width = 1;
    };
    std::vector<Section> sections;
    bool is_of_sum = false;  // a vector that is added to the processes' sum: once
};
TensorSplit split_of(const DecoderConfig& config, const TensorSpec& spec);

// A process, of `ranks`.
struct RankOf {
    int64_t rank = 0, ranks = 1;
};

// The config of a rank's slice: that of a model with its share of the heads and channels. Throws
// Error that names what the ranks do not divide, with both figures, and for norms over all heads.
// Heads of keys and values may also be fewer than the ranks, if they divide them.
DecoderConfig sliced_config(const DecoderConfig& config, int64_t ranks);

// The tokens whose logits a rank computes, from a multiple of 16 on; the last rank may have fewer
// than the others.
Range tokens_of(int64_t vocabulary, const RankOf& rank);

// The tensors of a rank's slice. Rows that follow one another are views of the source's memory.
class SlicedTensors : public TensorSource {
  public:
    // Throws Error as sliced_config() does. `whole` must outlive it.
    SlicedTensors(TensorSource& whole, const DecoderConfig& config, const RankOf& rank);

    const DecoderConfig& config() const { return config_; }

    // The slice of the tensor that a sliced model calls `name`; its shape is the slice's own.
    // Throws Error if a slice of columns would cut a quantised block.
    Tensor take(const std::string& name, std::initializer_list<int64_t> shape) override;
    bool has(const std::string& name) const override { return whole_.has(name); }
    std::string where() const override { return whole_.where(); }
    void use_threads(int count) override {
        threads_ = count;
        whole_.use_threads(count);
    }
    void release_tensors() override {
        copies_.clear();
        whole_.release_tensors();
    }
    bool is_mapped(const Tensor& tensor) const override { return whole_.is_mapped(tensor); }
    bool stores_out_in() const override { return whole_.stores_out_in(); }

  private:
    const TensorSpec& whole_spec(const std::string& name) const;
    Tensor copy(const TensorSpec& spec, const Tensor& whole, const std::vector<Range>& ranges,
                bool columns);
    Tensor zeros(const Tensor& like);

    TensorSource& whole_;
    DecoderConfig whole_config_, config_;
    RankOf rank_;
    std::map<std::string, TensorSpec> specs_;                          // the whole model's, by name
    std::map<std::tuple<int64_t, Part, int64_t>, std::string> names_;  // by layer, part, expert
    std::vector<std::unique_ptr<std::byte[]>> copies_;                 // until release_tensors()
    int threads_ = 1;
};

}  // namespace hark::gpt
