// The parameters of a GPT-2 that is trained: one run of float32 after another in a single vector,
// so that gradients, moments and the optimizer see one tensor. Gradients and moments are laid out
// alike. Matrices come first, as they alone decay.
//
// Ranks may each have a part of a model (tensor parallel; training.h): its attention by
// heads, the rows of c_attn and the columns of attn.c_proj; its MLP by channels, the rows of c_fc
// and the columns of mlp.c_proj; tables, norms and the biases behind a sum whole. Such a part has a
// layout of its own, in which what is cut lies together.
#pragma once

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "formats/tensor_source.h"
#include "gpt/families/config.h"

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
    Tensor wte;                   // (padded V, C): the rows behind the vocabulary are zeros
    Tensor wpe;                   // (n_positions, C)
    std::vector<BlockTensors> h;  // n_layer
    Tensor ln_f_weight, ln_f_bias;
    Tensor lm_head;  // (padded V, C); wte where the two are tied
};

// Elements of a vector that is laid out so.
struct Range {
    int64_t begin = 0, end = 0;
    int64_t size() const { return end - begin; }
    Range within(const Range& other) const {  // what both have
        return {std::clamp(other.begin, begin, end), std::clamp(other.end, begin, end)};
    }
};

// Where each parameter lies.
class ParameterLayout {
  public:
    struct Entry {
        std::string name;               // in a Hugging Face file: "h.0.attn.c_attn.weight"
        int64_t offset = 0;             // in floats
        int64_t rows = 0, columns = 0;  // columns 0: a vector of `rows`
        int64_t stored_rows = 0;        // without the padding of the vocabulary
        bool transposed = false;        // the file has it (in, out), memory (out, in)
        // Into how many stretches it falls, of each of which every rank has an equal piece; 0 where
        // all ranks have all of it.
        int64_t stretches = 0;

        int64_t size() const { return rows * (columns > 0 ? columns : 1); }
        int64_t stored_size() const { return stored_rows * (columns > 0 ? columns : 1); }
    };

    // Of the part that one of `ranks` has; they must divide heads and the MLP's channels.
    explicit ParameterLayout(const Config& config, int64_t ranks = 1);

    int64_t size() const { return size_; }        // floats
    int64_t decayed() const { return decayed_; }  // the first of them, which are matrices
    int64_t tables() const { return tables_; }    // the first of those: embeddings and lm_head
    // The first of block i's matrices, which lie together; those of the last one end at decayed().
    int64_t block(int64_t i) const { return tables_ + (decayed_ - tables_) / config_.n_layer * i; }
    int64_t cut() const { return cut_; }  // behind tables(), the end of what is cut among ranks
    int64_t padded_vocab() const { return padded_vocab_; }
    const std::vector<Entry>& entries() const { return entries_; }
    int64_t blocks() const { return config_.n_layer; }
    const Entry& at(const std::string& name) const { return entries_[places_.at(name)]; }
    // The views of `all` (size()) f32; with `matrices` (decayed()), a copy of the first ones in
    // another type, these are what is multiplied with: all but the positions.
    ModelTensors views(Tensor all, Tensor matrices = {}) const;

    // What follows is the whole model's, not a part's.
    //
    // GPT-2's own start: matrices from a normal distribution of deviation 0.02, those that end in
    // the residual stream of 0.02 / sqrt(2 n_layer), norms 1, biases 0. Radford et al. 2019,
    // section 2.3. `all` (size()) on the host.
    void initialize(Tensor all, uint64_t seed) const;
    // From a checkpoint. Throws Error as the source does, and where a value is not finite.
    void read(Tensor all, TensorSource& source) const;
    // DIR/model.safetensors as transformers names and stores it, whole or not at all, in f32, f16
    // or bf16. Throws Error where a value is too large for f16.
    void write(Tensor all, const std::filesystem::path& file, Dtype dtype = Dtype::f32) const;

  private:
    void add(Entry entry);
    void add_tables();

    Config config_;
    int64_t ranks_, padded_vocab_ = 0, size_ = 0, decayed_ = 0, tables_ = 0, cut_ = 0;
    std::vector<Entry> entries_;
    std::map<std::string, size_t> places_;  // in entries_
};

}  // namespace hark::gpt
