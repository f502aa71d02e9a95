// The matrices of bitsandbytes.
//
// Four bits, nf4 and fp4, of a matrix's values in their order:
//
//     weight                  two numbers per byte, the first in the higher bits; any type, shape
//     weight.quant_map        F32 (16): the value of each number
//     weight.absmax           F32 (blocks): a scale per block; or U8, if it is quantised as well:
//     weight.nested_quant_map F32 (256)
//     weight.nested_absmax    F32 (blocks of these)
//     weight.quant_state.bitsandbytes__nf4 (or fp4)   U8: JSON with blocksize, dtype, shape,
//                             nested_blocksize and nested_offset
//
// absmax = nested_quant_map[u8] * nested_absmax + nested_offset.
// Eight bits: weight I8 (out, in) and SCB F32 (out); a value is q * SCB / 127.
// Source: bitsandbytes-foundation/bitsandbytes, bitsandbytes/functional.py (QuantState).
#pragma once

#include "formats/packed/packed_matrix.h"

namespace hark {

std::unique_ptr<PackedFormat> make_bitsandbytes_format();

}  // namespace hark
