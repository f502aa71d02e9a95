// How the CPU's products of many rows are cut into panels of weights.
#pragma once

#include "kernels/linear/pieces.h"

namespace hark {

inline constexpr int64_t kPanelRows = 512;  // of x, whose sums stay in the second cache
// The epilogue of one panel alone takes 17% of the time at K = 768, of four together 7%.
inline constexpr int64_t kPanelsAtOnce = 4;

// How many rows of x are multiplied with a panel, and the bytes that a worker needs for that.
struct PanelSizes {
    int64_t most_rows, multiple, scratch;
};

// Many rows, kPanelsAtOnce panels of weights at a time. products(sums, ld, t, rows, row, count,
// scratch) multiplies rows [t, t + rows) of x, at most sizes.most_rows or fewer if there are more
// threads than panels, with weights [row, row + count); t is a multiple of sizes.multiple.
template <class Products>
void in_panels(Context& ctx, float* y, int64_t t_size, int64_t n_size, const PanelSizes& sizes,
               const EpiloguePointers& then, const Products& products) {
    const CpuKernels& cpu = cpu_kernels();
    const int64_t panels = (n_size + kPanelOutputs - 1) / kPanelOutputs;
    const int64_t cuts = std::max((t_size + sizes.most_rows - 1) / sizes.most_rows,
                                  (ctx.threads + panels - 1) / panels);
    const int64_t multiples = (t_size + sizes.multiple - 1) / sizes.multiple;
    const int64_t rows_at_once = (multiples + cuts - 1) / cuts * sizes.multiple;
    const int64_t tasks = (t_size + rows_at_once - 1) / rows_at_once * panels,
                  workers = std::min<int64_t>(ctx.threads, tasks);
    auto* scratch = ctx.arena.tensor(Dtype::u8, {workers, sizes.scratch}).as<uint8_t>();
    constexpr int64_t kWidth = kPanelsAtOnce * kPanelOutputs;
    float* sums = ctx.arena.tensor(Dtype::f32, {workers, rows_at_once, kWidth}).as<float>();
    parallel_for(ctx.threads, workers, [&](int64_t worker) {
        float* product = sums + worker * rows_at_once * kWidth;
        const int64_t last = (worker + 1) * tasks / workers;
        for (int64_t i = worker * tasks / workers; i < last;) {
            const int64_t t = i / panels * rows_at_once, begin = i % panels * kPanelOutputs;
            const int64_t rows = std::min(rows_at_once, t_size - t);
            const int64_t count = std::min({kPanelsAtOnce, last - i, panels - i % panels});
            for (int64_t n = 0; n < count * kPanelOutputs; n += kPanelOutputs)
                products(product + n, kWidth, t, rows, begin + n,
                         std::min(kPanelOutputs, n_size - begin - n),
                         scratch + worker * sizes.scratch);
            for (int64_t row = 0; row < rows; ++row) {
                const int64_t place = (t + row) * n_size + begin;
                cpu.epilogue(y + place, product + row * kWidth, at(then.bias, begin),
                             at(then.residual, place),
                             std::min(count * kPanelOutputs, n_size - begin), then.activation);
            }
            i += count;
        }
    });
}

}  // namespace hark
