#include "kernels/linear/split_product.h"

#include "kernels/linear/panels.h"

namespace hark {

void split_product(Context& ctx, float* y, const float* x, int64_t t_size, const Matrix& w,
                   const EpiloguePointers& then) {
    const Arena::Scope scope(ctx.arena);
    const SplitKernels& cpu = *cpu_kernels().splits;
    const Dtype dtype = w.values.dtype;
    const int64_t n_size = w.values.dim(0), k_size = w.values.dim(1);
    const int64_t pieces = (t_size + kSplitRows - 1) / kSplitRows;
    const int64_t piece_bytes = cpu.arranged_bytes(k_size, dtype);
    auto* arranged =
        static_cast<std::byte*>(ctx.arena.tensor(Dtype::u8, {pieces, piece_bytes}).data);
    parallel_for(ctx.threads, pieces, [&](int64_t i) {
        const int64_t t = i * kSplitRows;
        cpu.arrange(arranged + i * piece_bytes, x + t * k_size, std::min(kSplitRows, t_size - t),
                    k_size, dtype);
    });
    const PanelSizes sizes = {.outputs = 2 * kSplitRows,
                              .most_rows = kPanelRows,
                              .multiple = 2 * kSplitRows,
                              .scratch = cpu.scratch_bytes(dtype),
                              .at_once = kSplitOutputs / (2 * kSplitRows)};
    in_panels(ctx, y, t_size, n_size, sizes, then,
              [&](float* sums, int64_t ld, int64_t t, int64_t t_count, int64_t row, int64_t n,
                  uint8_t* scratch) {
                  const auto row_size = static_cast<int64_t>(row_bytes(dtype, k_size));
                  const auto* rows = static_cast<const std::byte*>(w.values.data) + row * row_size;
                  cpu.products(sums, ld, arranged + t / kSplitRows * piece_bytes, t_count,
                               {rows, dtype, k_size}, n, reinterpret_cast<std::byte*>(scratch));
              });
}

}  // namespace hark
