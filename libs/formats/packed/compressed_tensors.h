// The matrices of compressed-tensors, which llm-compressor writes.
//
// pack-quantized, integers of up to 8 bits, dense along a row, each q + 2^(bits - 1):
//
//     weight_packed       I32 (out, ceil(in * bits / 32))
//     weight_shape        I64 (2): out, in
//     weight_zero_point   I32 (ceil(out * bits / 32), groups), dense along `out`; if asymmetric
//     weight_g_idx        I32 (in): the group of each column; with act-order
//
// int-quantized, float-quantized and naive-quantized: weight I8 or F8_E4M3 (out, in),
// weight_zero_point I8 in the shape of the scales.
// All: weight_scale, one for the matrix, or per row, group or block. A value is (q - zero) * scale,
// rounded to the scales' type. Source: vllm-project/compressed-tensors, src/compressed_tensors/
// compressors and quantization/lifecycle/forward.py.
#pragma once

#include "formats/packed/packed_matrix.h"
#include "formats/packed/scale_grid.h"

namespace hark {

// The settings of a group of modules, of config_groups.
struct CompressedGroup {
    std::function<bool(const std::string& module)> covers;  // by a module's name in the folder
    int bits = 8;
    bool packed = false;    // pack-quantized
    bool symmetric = true;  // no zero points
    Cell cell;
};

// A module has the settings of the first group that covers it.
std::unique_ptr<PackedFormat> make_compressed_format(std::vector<CompressedGroup> groups);

}  // namespace hark
