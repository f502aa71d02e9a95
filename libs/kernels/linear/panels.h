// How the CPU's products of many rows are cut into panels of weights.
#pragma once

#include "core/error.h"
#include "kernels/linear/pieces.h"

namespace hark {

inline constexpr int64_t kPanelRows = 512;  // of x, whose sums stay in the second cache
// Outputs whose epilogue is one: of 32 alone it takes 17% of the time at K = 768, of 128 7%.
inline constexpr int64_t kOutputsAtOnce = 128;

// Rows of weights in a panel, rows of x that are multiplied with it, the bytes that a worker needs
// for that, and how many panels are multiplied at once.
struct PanelSizes {
    int64_t outputs, most_rows, multiple, scratch, at_once = 1;
};

// Rows [t, t + rows) of y (T, y_size), columns [begin, begin + n), from their sums. Of a gated
// product the second half's sums begin at kOutputsAtOnce / 2.
inline void finish_panels(float* y, int64_t y_size, float* sums, int64_t t, int64_t rows,
                          int64_t begin, int64_t n, const EpiloguePointers& then) {
    const CpuKernels& cpu = cpu_kernels();
    for (int64_t row = 0; row < rows; ++row, sums += kOutputsAtOnce) {
        const int64_t place = (t + row) * y_size + begin;
        if (!then.gated) {
            cpu.epilogue(y + place, sums, at(then.bias, begin), at(then.residual, place), n,
                         then.activation);
            continue;
        }
        float* up = sums + kOutputsAtOnce / 2;
        if (then.bias) {
            cpu.add(sums, sums, then.bias + begin, n);
            cpu.add(up, up, then.bias + y_size + begin, n);
        }
        cpu.gated(y + place, sums, up, n, then.activation);
    }
}

// Many rows, panels for kOutputsAtOnce outputs at a time. products(sums, ld, t, rows, row, count,
// scratch) multiplies rows [t, t + rows) of x, at most sizes.most_rows or fewer if there are more
// threads than panels, with weights [row, row + count) of up to sizes.at_once panels; t is a
// multiple of sizes.multiple.
template <class Products>
void in_panels(Context& ctx, float* y, int64_t t_size, int64_t n_size, const PanelSizes& sizes,
               const EpiloguePointers& then, const Products& products) {
    const int64_t halves = then.gated ? 2 : 1, y_size = n_size / halves;
    const int64_t most_outputs = kOutputsAtOnce / halves;
    const int64_t outputs = sizes.outputs, panels = (y_size + outputs - 1) / outputs;
    require(outputs <= most_outputs, "panels: expected at most ", most_outputs, " outputs, found ",
            outputs);
    const int64_t cuts = std::max((t_size + sizes.most_rows - 1) / sizes.most_rows,
                                  (ctx.threads + panels - 1) / panels);
    const int64_t multiples = (t_size + sizes.multiple - 1) / sizes.multiple;
    const int64_t rows_at_once = (multiples + cuts - 1) / cuts * sizes.multiple;
    const int64_t tasks = (t_size + rows_at_once - 1) / rows_at_once * panels,
                  workers = std::min<int64_t>(ctx.threads, tasks);
    auto* scratch = ctx.arena.tensor(Dtype::u8, {workers, sizes.scratch}).as<uint8_t>();
    float* sums = ctx.arena.tensor(Dtype::f32, {workers, rows_at_once, kOutputsAtOnce}).as<float>();
    parallel_for(ctx.threads, workers, [&](int64_t worker) {
        float* product = sums + worker * rows_at_once * kOutputsAtOnce;
        const int64_t last = (worker + 1) * tasks / workers;
        for (int64_t i = worker * tasks / workers; i < last;) {
            const int64_t t = i / panels * rows_at_once, begin = i % panels * outputs;
            const int64_t rows = std::min(rows_at_once, t_size - t);
            const int64_t count = std::min({most_outputs / outputs, last - i, panels - i % panels});
            const int64_t end = std::min(count * outputs, y_size - begin);
            for (int64_t half = 0; half < halves; ++half)
                for (int64_t n = 0; n < end; n += outputs * sizes.at_once)
                    products(product + half * most_outputs + n, kOutputsAtOnce, t, rows,
                             half * y_size + begin + n, std::min(outputs * sizes.at_once, end - n),
                             scratch + worker * sizes.scratch);
            finish_panels(y, y_size, product, t, rows, begin, end, then);
            i += count;
        }
    });
}

}  // namespace hark
