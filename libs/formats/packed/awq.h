// AutoAWQ's matrices, "gemm" version: four bits, stored (in, out).
//
//     qweight   I32 (in, out / 8)       columns 0 to 7 of a word at bits 0, 16, 4, 20, 8, 24, 12,
//     28 qzeros    I32 (groups, out / 8)   in the same order scales    F16 (groups, out)       a
//     group is in / groups rows
//
// A value is (q - zero) * scale, rounded to the scales' type.
// Source: casper-hansen/AutoAWQ, awq/modules/linear/gemm.py, awq/utils/packing_utils.py.
#pragma once

#include "formats/packed/packed_matrix.h"

namespace hark {

// group_size -1: all rows are one group.
std::unique_ptr<PackedFormat> make_awq_format(int64_t group_size);

}  // namespace hark
