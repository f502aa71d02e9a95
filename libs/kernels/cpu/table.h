// The table of the loops above, for the including file: kKernelsName is its own. Further features
// of the processor are found at run time.
#pragma once

// The order matters: each uses the ones before.
#include "kernels/cpu/elementwise.h"

#include "kernels/cpu/products.h"

#include "kernels/cpu/attend.h"

#include "kernels/cpu/gradients.h"

#include "kernels/quant/cpu/dequantize.h"

#include "kernels/quant/cpu/block_products.h"

static constexpr CpuKernels kTable = {
    .name = kKernelsName,
    .has_bf16 = false,
    .has_int8 = false,
    .bytes = nullptr,
    .panels = nullptr,
    .tiles = nullptr,
    .integer_attention = nullptr,
    .splits = nullptr,
    .products = products,
    .products_int8 = products_int8,
    .block_products = block_products,
    .epilogue = epilogue,
    .widen = widen,
    .narrow = narrow,
    .widen_int8 = widen_int8,
    .dequantize = dequantize,
    .quantize = quantize,
    .quantize_wide = quantize_wide,
    .finish_int8 = finish_int8,
    .layer_norm = layer_norm,
    .rms_norm = rms_norm,
    .gated = gated,
    .add = add,
    .multiply = multiply,
    .softmax = softmax,
    .soft_cap = soft_cap,
    .log_sum_exp = log_sum_exp,
    .largest = largest_of,
    .dot = dot_of,
    .activate_backward = activate_backward,
    .layer_norm_backward = layer_norm_backward,
    .norm_gradients = norm_gradients,
    .rms_norm_backward = rms_norm_backward,
    .rms_norm_gradients = rms_norm_gradients,
    .add_rows = add_rows,
    .scores_backward = scores_backward,
    .sum_of_squares = sum_of_squares,
    .adamw = adamw,
    .attend = attend,
    .combine = combine,
    .panel = kPanel,
    .rows_at_once = Vec::kPanelRows,
    .pack = pack,
    .pack_transposed = pack_transposed,
    .multiply_packed = multiply_packed,
};
