// Weights: the memory of a model's parameters, converted once while a checkpoint is read.
//
// A model keeps one Weights and views of its memory:
//
//     Weights weights(precision.weights, ctx.arena.source());
//     block.qkv = weights.matrix({q, k, v});               // (3C, C), rows stacked
//     block.qkv_bias = weights.vector({qb, zeros_of(C), vb});  // (3C); Whisper's keys have no bias
//     block.c_fc = weights.transposed({stored});           // GPT-2's Conv1D, stored (in, out)
//     conv1 = weights.convolution(stored);                 // (N, C, 3) -> (N, 3 * C)
//
// Stored tensors are f32, f16 or bf16, those of matrix() also quantised, and are only read; once a
// call returns, their pages may go (SafetensorsFile::forget). Nothing is kept but the result.
// Functions throw Error where dtypes, ranks or lengths do not fit, or a value is not finite.
#pragma once

#include <cstddef>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <vector>

#include "core/tensor.h"
#include "kernels/ops.h"
#include "kernels/runtime/backend.h"

namespace hark {

// A part of a vector that no file stores: n zeros.
Tensor zeros_of(int64_t n);

class Weights {
  public:
    // The results are in `memory`, the CPU's or a GPU's. `threads` of the CPU read and
    // convert.
    explicit Weights(Precision::Weights precision = Precision::Weights::keep,
                     const MemorySource& memory = cpu_memory(), int threads = 1)
        : memory_(memory), precision_(precision), threads_(threads) {}
    Weights(Weights&&) = default;
    Weights& operator=(Weights&&) = default;

    // The parts (N1, K), (N2, K), ... one below the other: (N1 + N2 + ..., K) in the precision
    // given to the constructor, or in another one.
    // keep: quantised parts of one type as they are; else f16 where every value of all parts fits
    // it exactly, else f32. keep_f16: quantised parts as they are too, else f16. f16 and bf16:
    // rounded to nearest even; f16 refuses a value beyond its range. int8: symmetric, a scale a
    // row, amax / 127, rounded to nearest; a row of zeros has scale 0.
    Matrix matrix(std::initializer_list<Tensor> parts) { return matrix(parts, precision_); }
    Matrix matrix(std::initializer_list<Tensor> parts, Precision::Weights precision);

    // The same from parts stored (K, N), as GPT-2's Conv1D has them: (N1 + N2 + ..., K).
    Matrix transposed(std::initializer_list<Tensor> parts) { return transposed(parts, precision_); }
    Matrix transposed(std::initializer_list<Tensor> parts, Precision::Weights precision);

    // A convolution over time stored (N, C, taps), tap-major as conv1d takes it: (N, taps * C).
    Matrix convolution(Tensor stored) { return convolution(stored, precision_); }
    Matrix convolution(Tensor stored, Precision::Weights precision);

    // Vectors laid end to end, as f32: biases, norms. Each of rank 1.
    Tensor vector(std::initializer_list<Tensor> parts);

    // A table of any rank as f32 in the same shape: positions.
    Tensor table(Tensor stored);

    // Uninitialised memory of this model on the host, aligned to 64 bytes: for weights made by a
    // formula.
    Tensor empty(Dtype dtype, std::initializer_list<int64_t> shape);

    size_t bytes() const { return bytes_; }  // what all of them take together

  private:
    struct Part;
    void for_rows(const std::vector<Part>& parts, int64_t size,
                  const std::function<void(int64_t, std::span<const float>)>& use) const;
    Precision::Weights kept(const std::vector<Part>& parts, int64_t size) const;
    static bool are_stored(const std::vector<Part>& parts, Dtype dtype);
    Matrix as_stored(const std::vector<Part>& parts, int64_t size);
    Matrix converted(const std::vector<Part>& parts, int64_t size, Precision::Weights kind);
    // Copies a filled result of empty() to this model's device.
    Tensor on_device(Tensor host);
    Tensor take(const MemorySource& memory, Tensor view);

    using Block = std::unique_ptr<void, void (*)(void*)>;
    MemorySource memory_;
    std::vector<Block> blocks_;
    size_t bytes_ = 0;
    Precision::Weights precision_;
    int threads_ = 1;
};

}  // namespace hark
