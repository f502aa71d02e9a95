// The inputs of a pass of the engine on a GPU.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "gpt/engine/batch_sequence.h"
#include "kernels/batch_layout.h"
#include "kernels/sampling/gpu_sampler.h"

namespace hark::gpt {

// Rows of a recorded step: 1, 2, 4, 8, 12, 16, 24, 32, ...
inline int64_t row_bucket(int64_t rows, int64_t most) {
    const auto power = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(rows)));
    const int64_t between = power / 4 * 3;
    return std::min(power > 8 && rows <= between ? between : power, most);
}

// What the host knows of a pass's rows: BatchLayout's numbers.
struct PassShape {
    int64_t max_queries = 0, most_keys = 0, few = 0, few_queries = 0;
};

// Of a pass whose texts come before its prompts.
inline PassShape shape_of(std::span<const PassPiece> pass) {
    PassShape shape;
    for (const PassPiece& piece : pass) {
        shape.max_queries = std::max(shape.max_queries, piece.rows());
        shape.most_keys = std::max(shape.most_keys, piece.end);
    }
    if (shape.max_queries <= kFewQueries) return shape;
    for (const PassPiece& piece : pass) {
        if (piece.rows() > kFewQueries) break;
        ++shape.few;
        shape.few_queries = std::max(shape.few_queries, piece.rows());
    }
    return shape;
}

// The inputs of a pass, in one memory on the host and one on the GPU: T rows of B sequences, tables
// of M blocks per group, n samples.
class PassInputs {
  public:
    struct Sizes {
        int64_t rows, sequences, blocks, groups, samples;
    };
    static int64_t bytes(const Sizes& s) {
        return s.samples * int64_t{sizeof(SampleRow)} +
               4 * (2 * s.rows + 2 * s.sequences + 1 + s.groups * s.sequences * s.blocks +
                    s.samples);
    }
    PassInputs() = default;
    PassInputs(const Sizes& sizes, void* memory, Device device)
        : sizes(sizes), samples(static_cast<SampleRow*>(memory)), device_(device) {
        at_ = reinterpret_cast<int32_t*>(samples + sizes.samples);
        from = take(sizes.rows);
        position = take(sizes.rows);
        start = take(sizes.sequences + 1);
        length = take(sizes.sequences);
        wanted = take(sizes.samples);
        for (int64_t g = 0; g < sizes.groups; ++g)
            tables.push_back(take(sizes.sequences * sizes.blocks));
    }
    Tensor tensor(int32_t* data, int64_t n) const { return Tensor(data, Dtype::i32, {n}, device_); }
    BatchLayout layout(size_t group, const PassShape& shape) const {
        return {tensor(start, sizes.sequences + 1),
                Tensor(tables[group], Dtype::i32, {sizes.sequences, sizes.blocks}, device_),
                tensor(length, sizes.sequences),
                shape.max_queries,
                shape.most_keys,
                true,
                shape.few,
                shape.few_queries};
    }

    Sizes sizes{};
    SampleRow* samples = nullptr;
    int32_t *from = nullptr, *position = nullptr, *start = nullptr, *length = nullptr;
    int32_t* wanted = nullptr;
    std::vector<int32_t*> tables;  // per group (B, M)

  private:
    int32_t* take(int64_t n) { return std::exchange(at_, at_ + n); }
    int32_t* at_ = nullptr;
    Device device_ = Device::cpu;
};

}  // namespace hark::gpt
