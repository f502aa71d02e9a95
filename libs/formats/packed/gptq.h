// The matrices of AutoGPTQ and GPTQModel: 2, 3, 4 or 8 bits, stored (in, out).
//
//     qweight   I32 (in * bits / 32, out)       dense along `in`
//     qzeros    I32 (groups, out * bits / 32)   dense along `out`; each less 1 in the format "gptq"
//     scales    F16 (groups, out)
//     g_idx     I32 (in): the group of each row; it may be missing if a group is neighbouring rows
//
// A value is scale * (q - zero), rounded to the scales' type. A zero point that is stored as the
// largest number stands for one more, as in AutoGPTQ.
// Source: AutoGPTQ/AutoGPTQ, auto_gptq/nn_modules/qlinear/qlinear_cuda.py.
#pragma once

#include "formats/packed/packed_matrix.h"

namespace hark {

struct GptqSettings {
    int bits = 4;             // 0: those that a module's parts have
    int64_t group_size = -1;  // of modules without g_idx; -1: all rows are one group
    bool has_offset = true;   // of zero points: the format "gptq", not "gptq_v2"
};

std::unique_ptr<PackedFormat> make_gptq_format(const GptqSettings& settings);

}  // namespace hark
