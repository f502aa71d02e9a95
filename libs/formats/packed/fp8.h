// Matrices of floats of eight bits with scales.
//
//     weight             F8_E4M3 (out, in)
//     weight_scale_inv   F32 or BF16 (out / 128, in / 128), a factor in spite of its name; or
//     weight_scale       per row (out, 1), or one for the whole matrix
//
// Source: transformers integrations/finegrained_fp8.py, fbgemm_fp8.py.
#pragma once

#include "formats/packed/packed_matrix.h"
#include "formats/packed/scale_grid.h"

namespace hark {

// The scales are per `block` in weight_scale_inv; without a block per row or one, in weight_scale.
std::unique_ptr<PackedFormat> make_fp8_format(const Cell& block);

// The reader of F8_E4M3 or I8 numbers in `part` with those scales.
PackedMatrix open_scaled_bytes(const ModuleParts& parts, const std::string& part, ScaleGrid grid,
                               int64_t rows, int64_t columns);

}  // namespace hark
