// The parameters of a decoder in training: one vector of float32, so that gradients, moments and
// the optimizer see one tensor. The decayed matrices come first. A tensor-parallel rank's slice has
// a layout of its own, its sliced tensors contiguous (docs/models/gpt2.md). What the file has in
// several tensors and one product takes, as q, k and v, is next to each other.
#pragma once

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "formats/tensor_source.h"
#include "gpt/families/config.h"
#include "gpt/families/tensor_slices.h"

namespace hark::gpt {

// Views of a block's parameters, or of their gradients. A bias that the family has not is none.
struct BlockTensors {
    Tensor attn_norm_weight, attn_norm_bias;  // (C)
    Tensor qkv_weight, qkv_bias;              // ((H + 2 Hkv) D, C): the rows of q, of k, of v
    Tensor q_norm_weight, k_norm_weight;      // (D), or (H D) and (Hkv D), or none
    Tensor attn_out_weight, attn_out_bias;    // (C, H D), (C)
    Tensor mlp_norm_weight, mlp_norm_bias;    // (C)
    Tensor mlp_in_weight, mlp_in_bias;        // up (inner, C), or gate and up (2 inner, C)
    Tensor down_weight, down_bias;            // (C, inner), (C)
};

struct ModelTensors {
    Tensor token_table;                // (padded V, C): the rows after the vocabulary are zeros
    Tensor position_table;             // (n_positions, C), or none
    std::vector<BlockTensors> blocks;  // n_layer
    Tensor final_norm_weight, final_norm_bias;
    Tensor lm_head;           // (padded V, C); token_table if the head is tied
    std::vector<Rope> ropes;  // DecoderConfig::ropes on the device: upload_ropes(), training.h
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

    // The layout of the slice of one of `ranks`, which must divide the heads, those of keys and
    // values, and the MLP's channels. Throws Error that names what is not trained: norms after
    // attention or MLP, windows, soft caps, scales other than GPT-2's.
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
    // Before the names in the family's Hugging Face checkpoints: "transformer."
    const std::string& prefix() const { return prefix_; }
    // Rows of each of the matrices that an entry of a full model's layout consists of.
    std::vector<int64_t> matrices_of(const Entry& entry) const;
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
    void add_table(const TensorSpec& spec);
    Tensor view(const Entry& entry, const Tensor& all, const Tensor& matrices) const;

    DecoderConfig config_;
    std::string prefix_;
    int64_t padded_vocab_ = 0, size_ = 0, decayed_ = 0, tables_ = 0, sliced_ = 0;
    std::vector<Entry> entries_;
    std::map<std::string, size_t> places_;  // in entries_
};

}  // namespace hark::gpt
