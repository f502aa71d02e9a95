// Products with quantised weights in integers, on the CPU: x is rounded to 16 bits. The arguments
// are those of cpu_product().
#pragma once

#include "kernels/linear/pieces.h"

namespace hark {

// Whether many_quantized_rows() has tiles for up to kFewRowsOnCpu rows, or for all with
// ctx.few_row_products: they give a row the bits of few_quantized_rows().
bool has_quantized_tiles(const Matrix& w);

// Below these rows of x few_quantized_rows() is faster than tiles are.
inline constexpr int64_t kFewestTileRows = 5;

// Up to kFewRowsOnCpu rows. A row's bits do not depend on the other rows.
void few_quantized_rows(Context& ctx, float* y, const float* x, int64_t t_size, const Matrix& w,
                        const EpiloguePointers& then);

// Any number of rows, on processors that have panels or tiles (cpu.h).
void many_quantized_rows(Context& ctx, float* y, const float* x, int64_t t_size, const Matrix& w,
                         const EpiloguePointers& then);

}  // namespace hark
