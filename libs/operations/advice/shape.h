// A model as predictions read it: its sizes, and the bytes of its matrices in each type.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gpt/families/config.h"
#include "gpt/families/tensor_spec.h"
#include "operations/advice/work.h"
#include "whisper/model/config.h"

namespace hark::advice {

// What reads a matrix.
enum class Group {
    encoder,
    layers,    // of the decoder, once per pass
    cross_kv,  // Whisper's keys and values of cross-attention: once per window
    experts,   // those of a layer that are chosen, once per pass
    head,      // the output's weights, once per pass
    rows,      // tables of which a token takes one row, and vectors
};
inline constexpr int kGroups = 6;

// A model's weights in a type.
struct Weights {
    std::string type;
    double parameters[kGroups] = {}, bytes[kGroups] = {};
    WeightKind kind = WeightKind::half;         // of the layers' matrices
    WeightKind expert_kind = WeightKind::half;  // of the experts'
    Arithmetic arithmetic = Arithmetic::half;   // of products of many rows
    double cache_bytes = 2;                     // of a number in a cache

    double of(Group group) const { return bytes[static_cast<int>(group)]; }
    double count(Group group) const { return parameters[static_cast<int>(group)]; }
    double total() const;
};

class Shape {
  public:
    // Of a published model, "turbo" or "llama-3.1-8b", with weights in 16 bits.
    Shape(std::string name, const whisper::Config& config);
    Shape(std::string name, const gpt::DecoderConfig& config);

    const std::string& name() const { return name_; }
    bool is_whisper() const { return whisper_.has_value(); }
    const whisper::Config& whisper() const { return *whisper_; }
    const gpt::DecoderConfig& gpt() const { return *gpt_; }

    // The type of the file's largest matrices, which `auto` keeps: "f16", "q8_0", "q4_k".
    const std::string& stored() const { return stored_; }
    // `auto`, then those of --dtype, then those of hark-model convert --type. A file of blocks has
    // `auto` alone; f32 is left out for GPUs, whose kernels for it have not been measured. fp8 is
    // for Hopper GPUs.
    std::vector<std::string> types(bool is_gpu, bool is_hopper = false) const;
    Weights weights(const std::string& type, bool is_gpu) const;

    // Sets what the file's matrices are stored in: `dtype_of(name)` of each, as its tensors are
    // named in a Hugging Face folder.
    template <class DtypeOf>
    void set_stored(const DtypeOf& dtype_of) {
        for (Matrix& matrix : matrices_) matrix.stored = dtype_of(matrix.name);
        name_stored();
    }

  private:
    struct Matrix {
        std::string name;
        Group group;
        int64_t rows, columns;  // columns of a vector: 0
        bool is_convolution = false;
        gpt::TensorSpec spec{};  // of a language model
        Dtype stored = Dtype::f16;
    };
    Dtype dtype_of(const Matrix& matrix, const std::string& type) const;
    void name_stored();

    std::string name_, stored_ = "f16";
    std::optional<whisper::Config> whisper_;
    std::optional<gpt::DecoderConfig> gpt_;
    std::vector<Matrix> matrices_;
};

// The shape of --model: a model's files, a config.json, an installed model, or a published one that
// is not installed. Throws Error as find_models() does.
Shape find_shape(const std::string& model);

}  // namespace hark::advice
