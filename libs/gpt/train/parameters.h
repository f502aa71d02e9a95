// The parameters of a GPT-2 in training: one vector of float32, so that gradients, moments and the
// optimizer see one tensor. The decayed matrices come first. A tensor-parallel rank's slice has a
// layout of its own, its sliced tensors contiguous (docs/models/gpt2.md).
#pragma once

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "formats/tensor_source.h"
#include "gpt/families/config.h"
#include "gpt/families/tensor_spec.h"

namespace hark::gpt {

// Views of a block's parameters, or of their gradients; names are the checkpoint's.
struct BlockTensors {
    Tensor ln_1_weight, ln_1_bias;  // (C)
    Tensor attn_weight, attn_bias;  // c_attn: (3C, C), (3C)
    Tensor proj_weight, proj_bias;  // attn.c_proj: (C, C), (C)
    Tensor ln_2_weight, ln_2_bias;  // (C)
    Tensor fc_weight, fc_bias;      // mlp.c_fc: (inner, C), (inner)
    Tensor out_weight, out_bias;    // mlp.c_proj: (C, inner), (C)
};

struct ModelTensors {
    Tensor wte;                   // (padded V, C): the rows after the vocabulary are zeros
    Tensor wpe;                   // (n_positions, C)
    std::vector<BlockTensors> h;  // n_layer
    Tensor ln_f_weight, ln_f_bias;
    Tensor lm_head;  // (padded V, C); wte if the head is tied
};

// Elements of a vector in a layout.
struct Range {
    int64_t begin = 0, end = 0;
    int64_t size() const { return end - begin; }
    Range within(const Range& other) const {  // the intersection
        return {std::clamp(other.begin, begin, end), std::clamp(other.end, begin, end)};
    }
};

// The place and shape of each parameter.
class ParameterLayout {
  public:
    struct Entry {
        std::string name;               // in a Hugging Face file: "h.0.attn.c_attn.weight"
        int64_t offset = 0;             // in floats
        int64_t rows = 0, columns = 0;  // columns 0: a vector of `rows`
        int64_t stored_rows = 0;        // without the padding of the vocabulary
        bool transposed = false;        // the file has it (in, out), memory (out, in)
        // Chunks of which each tensor-parallel rank has an equal slice; 0 if every rank has all.
        int64_t tp_chunks = 0;
        Part part = Part::token_table;
        int64_t layer = -1;  // -1: of no block

        int64_t size() const { return rows * (columns > 0 ? columns : 1); }
        int64_t stored_size() const { return stored_rows * (columns > 0 ? columns : 1); }
    };

    // The layout of the slice of one of `ranks`, which must divide the heads and the MLP's
    // channels.
    explicit ParameterLayout(const DecoderConfig& config, int64_t ranks = 1);

    int64_t size() const { return size_; }        // floats
    int64_t decayed() const { return decayed_; }  // the first of them, which are matrices
    int64_t tables() const { return tables_; }    // the first of those: embeddings and lm_head
    // The first of block i's matrices, which are contiguous; the last block's end at decayed().
    int64_t block(int64_t i) const { return tables_ + (decayed_ - tables_) / config_.n_layer * i; }
    int64_t sliced() const { return sliced_; }  // the end of the sliced ones, after tables()
    int64_t padded_vocab() const { return padded_vocab_; }
    const std::vector<Entry>& entries() const { return entries_; }
    int64_t blocks() const { return config_.n_layer; }
    const Entry& at(const std::string& name) const { return entries_[places_.at(name)]; }
    // The views of `all` (size()) f32. With `matrices` (decayed()), a copy of the first ones in
    // another type, the matrices of products, which are all but the positions, are views of that.
    ModelTensors views(Tensor all, Tensor matrices = {}) const;

    // GPT-2's initialisation: normal, deviation 0.02, or 0.02 / sqrt(2 n_layer) for the matrices
    // that end in the residual stream; norms 1, biases 0. Radford et al. 2019, section 2.3. `all`
    // (size()) on the host. This and what follows is for a full model's layout.
    void initialize(Tensor all, uint64_t seed) const;
    // Reads a checkpoint. Throws Error as the source does, and if a value is not finite.
    void read(Tensor all, TensorSource& source) const;
    // Writes DIR/model.safetensors as transformers names and stores it, whole or not at all, in
    // f32, f16 or bf16. Throws Error if a value is too large for f16.
    void write(Tensor all, const std::filesystem::path& file, Dtype dtype = Dtype::f32) const;

  private:
    void add(Entry entry);
    void add_tables();

    DecoderConfig config_;
    int64_t padded_vocab_ = 0, size_ = 0, decayed_ = 0, tables_ = 0, sliced_ = 0;
    std::vector<Entry> entries_;
    std::map<std::string, size_t> places_;  // in entries_
};

}  // namespace hark::gpt
