// Products with quantised weights in integers, on the CPU: x is rounded to 16 bits. The arguments
// are those of cpu_product().
#pragma once

#include "kernels/linear/pieces.h"

namespace hark {

// Whether many_quantized_rows() takes tiles for t_size rows: they give a row the bits of
// few_quantized_rows(), for fewer rows than panels are best for or if ctx.few_row_products asks.
bool in_quantized_tiles(const Context& ctx, int64_t t_size, const Matrix& w);

// Up to kFewRowsOnCpu rows. A row's bits do not depend on the other rows.
void few_quantized_rows(Context& ctx, float* y, const float* x, int64_t t_size, const Matrix& w,
                        const EpiloguePointers& then);

// Any number of rows, on processors that have panels or tiles (cpu.h).
void many_quantized_rows(Context& ctx, float* y, const float* x, int64_t t_size, const Matrix& w,
                         const EpiloguePointers& then);

}  // namespace hark
