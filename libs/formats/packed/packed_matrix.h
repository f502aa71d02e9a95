// Matrices that a checkpoint stores as small numbers with scales: what its formats share.
//
// Such a matrix is several tensors, the parts of a module: the matrix "layers.0.mlp.up_proj.weight"
// may be "layers.0.mlp.up_proj.qweight", ".qzeros" and ".scales".
#pragma once

#include <algorithm>
#include <functional>
#include <memory>

#include "core/tensor.h"
#include "formats/packed/module_parts.h"

namespace hark {

// The reader of a matrix (rows, columns), whose parts must stay mapped.
struct PackedMatrix {
    // Writes rows [first, first + count), (count, columns). Does not throw; several threads may
    // call it.
    std::function<void(int64_t first, int64_t count, float* to)> read;
    // The type to which the format's own code rounds the values: f16, bf16 or f32.
    Dtype dtype = Dtype::f32;
    // Whole numbers of `bits` bits with their sign, times the scale of their group of `neighbours`
    // columns; 0: the values are others.
    int bits = 0;
    int64_t neighbours = 0;
    std::function<float(int64_t row, int64_t column)> scale = {};
};

// Writes rows [first, first + count) of a matrix that is stored (in, out), value(c, o), as
// PackedMatrix::read does.
template <class Value>
void read_turned(int64_t columns, int64_t first, int64_t count, const Value& value, float* to) {
    // A cache line of each row at a time: rows a power of two apart share few places in a cache.
    constexpr int64_t kColumnsOfLine = 16;
    for (int64_t begin = 0; begin < columns; begin += kColumnsOfLine) {
        const int64_t end = std::min(columns, begin + kColumnsOfLine);
        for (int64_t o = 0; o < count; ++o)
            for (int64_t c = begin; c < end; ++c) to[o * columns + c] = value(c, first + o);
    }
}

// A format of packed matrices, with the settings of one folder.
class PackedFormat {
  public:
    virtual ~PackedFormat() = default;

    // Whether the module's matrix is packed. A module that is not has a plain tensor "weight".
    virtual bool packs(const ModuleParts& parts) const = 0;
    // Throws Error with file and tensor if a part is missing, of another type or shape, or
    // contradicts another.
    virtual PackedMatrix open(const ModuleParts& parts, int64_t rows, int64_t columns) const = 0;
};

}  // namespace hark
