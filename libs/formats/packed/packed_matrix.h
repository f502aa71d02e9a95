// Matrices that a checkpoint stores as small numbers with scales: what its formats share.
//
// Such a matrix is several tensors, the parts of a module: the matrix "layers.0.mlp.up_proj.weight"
// may be "layers.0.mlp.up_proj.qweight", ".qzeros" and ".scales".
#pragma once

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
};

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
