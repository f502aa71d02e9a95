// WeightStore: the memory of a model's parameters, converted once while a checkpoint is read.
//
// A model keeps one WeightStore and the views that it returns:
//
//     WeightStore weights(precision.weights, ctx.arena.source());
//     block.qkv = weights.matrix({q, k, v});               // (3C, C), rows stacked
//     block.qkv_bias = weights.vector({qb, zeros_of(C), vb});  // (3C); Whisper's keys have no bias
//     block.c_fc = weights.transposed({stored});           // GPT-2's Conv1D, stored (in, out)
//     conv1 = weights.convolution(stored);                 // (N, C, 3) -> (N, 3 * C)
//
// Stored tensors are f32, f16 or bf16, for matrix() also quantised. They are only read, and unless
// they are used in place not kept: once a call returns, their pages may be released
// (SafetensorsFile::forget). Functions throw
// Error if dtypes, ranks or lengths do not fit or a value is not finite.
#pragma once

#include <cstddef>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "core/files/fingerprint.h"
#include "core/tensor.h"
#include "kernels/ops.h"
#include "kernels/runtime/backend.h"

namespace hark {

// Files that a model may use in place: `owner` keeps them mapped, `holds` is whether a tensor is
// in one of them. Pages that a GPU has got are freed.
struct MappedWeights {
    std::shared_ptr<const void> owner;
    std::function<bool(const Tensor&)> holds;
};

// The rows [begin, end) of a matrix, in its memory.
Matrix rows_of(const Matrix& all, int64_t begin, int64_t end);

// Part of a vector that no file stores: n zeros.
Tensor zeros_of(int64_t n);

class WeightStore {
  public:
    // Results are stored in `memory`, the CPU's or a GPU's. `threads` threads of the CPU read and
    // convert. A matrix of one part that stays as it is stored is used in place, on the CPU, if it
    // is in `files`.
    explicit WeightStore(WeightPrecision precision = WeightPrecision::as_stored,
                         const MemorySource& memory = cpu_memory(), int threads = 1,
                         MappedWeights files = {})
        : memory_(memory), precision_(precision), threads_(threads), files_(std::move(files)) {}
    WeightStore(WeightStore&&) = default;
    WeightStore& operator=(WeightStore&&) = default;

    // The parts (N1, K), (N2, K), ... stacked: (N1 + N2 + ..., K), in the constructor's precision
    // or in another.
    // as_stored: quantised parts of one type unchanged, and bf16 parts, with Matrix::exact_x;
    // otherwise f16 if all values of all parts fit it exactly, else f32. quantized_or_f16,
    // quantized_or_bf16: quantised parts of one type unchanged; otherwise f16 or bf16. f16 and
    // bf16: rounded to nearest even; f16 refuses a value beyond its range. int8: symmetric, one
    // scale per row, amax / 127, rounded to nearest; a row of zeros has scale 0. fp8: the
    // same with amax / 448 and e4m3 (core/fp8.h).
    Matrix matrix(const std::vector<Tensor>& parts) { return matrix(parts, precision_); }
    Matrix matrix(const std::vector<Tensor>& parts, WeightPrecision precision);

    // The same from parts stored (K, N), as GPT-2's Conv1D: (N1 + N2 + ..., K). Quantised parts are
    // converted to f16 or f32, as others are.
    Matrix transposed(const std::vector<Tensor>& parts) { return transposed(parts, precision_); }
    Matrix transposed(const std::vector<Tensor>& parts, WeightPrecision precision);

    // A matrix per part, all of one shape; on a GPU they are stored one after another.
    std::vector<Matrix> matrices(const std::vector<Tensor>& parts);

    // The same from parts stored (K, N) of one shape: a matrix (N, K) per part, one after another.
    std::vector<Matrix> transposed_matrices(const std::vector<Tensor>& parts);

    // A convolution over time stored (N, C, taps), in conv1d's tap-major layout: (N, taps * C).
    Matrix convolution(Tensor stored) { return convolution(stored, precision_); }
    Matrix convolution(Tensor stored, WeightPrecision precision);

    // Concatenated vectors + `offset` as f32: biases, norms. All parts have rank 1.
    Tensor vector(const std::vector<Tensor>& parts, float offset = 0);

    // A table of any rank as f32 in the same shape: positions.
    Tensor table(Tensor stored);

    // Uninitialised host memory of this model, aligned to 64 bytes: for weights made by a formula.
    Tensor empty(Dtype dtype, std::initializer_list<int64_t> shape);

    // Whether matrix({stored}) would use the file's memory.
    bool stays_in_place(const Tensor& stored) const;

    // Until copy_waiting() what a GPU gets waits, and so do the tensors that it is read from: all
    // threads check and copy the pieces of many tensors at once. Short tensors one by one leave
    // threads idle.
    void gather() { gathers_ = memory_.device != Device::cpu; }
    size_t waiting_bytes() const { return waiting_bytes_; }
    // Copies what waits, and ends gather(). Throws Error for a value that is not finite.
    void copy_waiting();
    // Copies what waits if it keeps all threads busy; gather() continues. Whether nothing waits
    // now.
    bool copy_enough();

    size_t bytes() const { return bytes_; }  // total of all weights

    // Adds types, shapes and some values of all weights, which are on the context's device.
    void add_to(Fingerprint& fingerprint, Context& ctx) const;

  private:
    struct Part;
    struct Rows;
    // Bytes to check, if they are n values of a type, and to copy. is_mapped: from a file's pages,
    // which are then freed.
    struct Piece {
        std::byte* to;
        const std::byte* from;
        size_t bytes;
        Dtype dtype;
        int64_t n;
        bool is_mapped = false;
    };
    void copy(const std::vector<Piece>& pieces);
    void drop_host(const void* data);
    static int64_t rows_in(const std::vector<Part>& parts);
    static std::vector<Rows> pieces_of(const std::vector<Part>& parts, int64_t most);
    void for_rows(const std::vector<Part>& parts, int64_t size,
                  const std::function<void(int64_t, std::span<const float>)>& use) const;
    WeightPrecision resolve_precision(const std::vector<Part>& parts, int64_t size) const;
    static bool are_stored(const std::vector<Part>& parts, Dtype dtype);
    bool is_mapped(const Tensor& stored) const { return files_.holds && files_.holds(stored); }
    bool is_usable_in_place(const Tensor& stored) const;
    Matrix as_stored(const std::vector<Part>& parts, int64_t size);
    Matrix converted(const std::vector<Part>& parts, int64_t size, WeightPrecision kind);
    // Moves a filled tensor of empty() to this model's memory.
    Tensor to_device(Tensor host);
    Tensor take(const MemorySource& memory, Tensor view);

    using Block = std::unique_ptr<void, void (*)(void*)>;
    MemorySource memory_;
    std::vector<Block> blocks_;
    std::vector<Tensor> tensors_;  // all, in the order in which they were made
    size_t bytes_ = 0;
    WeightPrecision precision_;
    int threads_ = 1;
    MappedWeights files_;
    bool gathers_ = false;
    std::vector<Piece> waiting_;
    size_t waiting_bytes_ = 0;
    std::vector<const void*> waiting_hosts_;  // blocks that are dropped once they are copied
};

}  // namespace hark
