#include "kernels/linear/quantized_product.h"

#include <numeric>

#include "kernels/linear/panels.h"
#include "kernels/quant/block_types.h"

namespace hark {
namespace {

// Columns times rows of x in tiles, whose bytes stay in the second cache: 1 MiB.
constexpr int64_t kTileValues = 1 << 19;

// Weights as stored, (n, k).
struct Blocks {
    explicit Blocks(const Matrix& w)
        : dtype(w.values.dtype),
          n(w.values.dim(0)),
          k(w.values.dim(1)),
          row_size(static_cast<int64_t>(row_bytes(dtype, k))),
          data(static_cast<const uint8_t*>(w.values.data)) {}

    const uint8_t* row(int64_t i) const { return data + i * row_size; }

    Dtype dtype;
    int64_t n, k, row_size;
    const uint8_t* data;
};

// Rows of x as 16-bit integers for quantised weights; without the sums of groups.
IntegerInputs wide_inputs(Context& ctx, int threads, const float* x, int64_t t_size,
                          int64_t k_size) {
    auto* values = static_cast<int16_t*>(ctx.arena.tensor(Dtype::u8, {t_size, k_size, 2}).data);
    float* scales = ctx.arena.tensor(Dtype::f32, {t_size}).as<float>();
    parallel_for(threads, t_size, [&](int64_t t) {
        scales[t] =
            cpu_kernels().quantize_wide(values + t * k_size, x + t * k_size, k_size, kWideRange);
    });
    return {values, scales, nullptr};
}

// Sums of the values that share a scale: (t, k_size / shared).
const float* sums_of_groups(Context& ctx, int threads, const int16_t* values, int64_t t_size,
                            int64_t k_size, int64_t shared) {
    const int64_t groups = k_size / shared;
    float* sums = ctx.arena.tensor(Dtype::f32, {t_size, groups}).as<float>();
    parallel_for(threads, t_size, [&](int64_t t) {
        const int16_t* from = values + t * k_size;
        for (int64_t i = 0; i < groups; ++i, from += shared)
            sums[t * groups + i] =
                static_cast<float>(std::accumulate(from, from + shared, int32_t{0}));
    });
    return sums;
}

// Both bytes of the integers, for processors with byte products.
ByteInputs byte_inputs(Context& ctx, int threads, const IntegerInputs& from, int64_t t_size,
                       const Blocks& w) {
    const auto take = [&](Dtype type, int64_t n) { return ctx.arena.tensor(type, {t_size, n}); };
    const ByteInputs inputs = {take(Dtype::i8, w.k).as<int8_t>(), take(Dtype::i8, w.k).as<int8_t>(),
                               take(Dtype::i32, room_for_groups(w.k)).as<int32_t>(), from.scales};
    parallel_for(threads, t_size, [&](int64_t t) {
        cpu_kernels().bytes->split(inputs, t, from.values + t * w.k, w.dtype, w.k);
    });
    return inputs;
}

// The rows of x for tiles, kTileRows each.
const TileInputs* tile_inputs(Context& ctx, const ByteInputs& from, int64_t t_size,
                              const Blocks& w) {
    const int64_t count = (t_size + kTileRows - 1) / kTileRows;
    const int64_t bytes = kTileRows * w.k, sums = room_for_groups(w.k) * kTileRows;
    auto* inputs = reinterpret_cast<TileInputs*>(
        ctx.arena.tensor(Dtype::u8, {count, sizeof(TileInputs)}).data);
    auto* high = ctx.arena.tensor(Dtype::i8, {count, bytes}).as<int8_t>();
    auto* low = ctx.arena.tensor(Dtype::i8, {count, bytes}).as<int8_t>();
    auto* of_groups = ctx.arena.tensor(Dtype::i32, {count, sums}).as<int32_t>();
    parallel_for(ctx.threads, count, [&](int64_t i) {
        inputs[i] = {high + i * bytes, low + i * bytes, of_groups + i * sums};
        cpu_kernels().tiles->arrange(inputs[i], from, i * kTileRows,
                                     std::min(kTileRows, t_size - i * kTileRows), w.k);
    });
    return inputs;
}

}  // namespace

bool in_quantized_tiles(const Context& ctx, int64_t t_size, const Matrix& w) {
    const CpuKernels& cpu = cpu_kernels();
    return cpu.tiles && t_size >= cpu.tiles->fewest_rows &&
           (t_size <= cpu.tiles->most_rows || ctx.few_row_products) &&
           is_quantized(w.values.dtype) && cpu.bytes->has(w.values.dtype, w.values.dim(1));
}

// The sums of a block's products are exact, so activations use 16 bits.
void few_quantized_rows(Context& ctx, float* y, const float* x, int64_t t_size, const Matrix& w,
                        const EpiloguePointers& then) {
    const Arena::Scope scope(ctx.arena);
    const CpuKernels& cpu = cpu_kernels();
    const Blocks blocks(w);
    IntegerInputs inputs = wide_inputs(ctx, 1, x, t_size, blocks.k);
    if (cpu.bytes && cpu.bytes->has(blocks.dtype, blocks.k)) {
        const ByteInputs bytes = byte_inputs(ctx, 1, inputs, t_size, blocks);
        return in_pieces(ctx, y, t_size, blocks.n, then,
                         [&](int64_t, float* sums, int64_t begin, int64_t n) {
                             cpu.bytes->products(sums, kFewColumns, bytes, t_size,
                                                 blocks.row(begin), blocks.dtype, blocks.k, n);
                         });
    }
    inputs.sums =
        sums_of_groups(ctx, 1, inputs.values, t_size, blocks.k, values_that_share(blocks.dtype));
    const int64_t room = kUnpackedRows * blocks.k / 32 * kUnpackedPiece;
    auto* scratch = ctx.arena.tensor(Dtype::u8, {worker_count(ctx, blocks.n), room}).as<uint8_t>();
    in_pieces(ctx, y, t_size, blocks.n, then,
              [&](int64_t worker, float* sums, int64_t begin, int64_t n) {
                  cpu.block_products(sums, kFewColumns, inputs, t_size, blocks.row(begin),
                                     blocks.dtype, blocks.k, n, scratch + worker * room);
              });
}

void many_quantized_rows(Context& ctx, float* y, const float* x, int64_t t_size, const Matrix& w,
                         const EpiloguePointers& then) {
    const Arena::Scope scope(ctx.arena);
    const CpuKernels& cpu = cpu_kernels();
    const Blocks blocks(w);
    const int64_t k_size = blocks.k, shared = values_that_share(blocks.dtype);
    IntegerInputs inputs = wide_inputs(ctx, ctx.threads, x, t_size, k_size);
    if (in_quantized_tiles(ctx, t_size, w)) {
        const ByteInputs bytes = byte_inputs(ctx, ctx.threads, inputs, t_size, blocks);
        const TileInputs* tiles = tile_inputs(ctx, bytes, t_size, blocks);
        const int64_t rows = std::clamp(kTileValues / k_size, kTileRows, kPanelRows);
        const PanelSizes sizes = {kPanelOutputs, rows / kTileRows * kTileRows, kTileRows,
                                  tile_scratch_bytes(k_size)};
        return in_panels(ctx, y, t_size, blocks.n, sizes, then,
                         [&](float* sums, int64_t ld, int64_t t, int64_t t_count, int64_t row,
                             int64_t n, uint8_t* scratch) {
                             cpu.tiles->products(sums, ld, tiles + t / kTileRows, inputs.scales + t,
                                                 t_count, blocks.row(row), blocks.dtype, k_size, n,
                                                 scratch);
                         });
    }
    if (has_minima(blocks.dtype))
        inputs.sums = sums_of_groups(ctx, ctx.threads, inputs.values, t_size, k_size, shared);
    in_panels(ctx, y, t_size, blocks.n, {kPanelOutputs, kPanelRows, 1, kPanelBytes}, then,
              [&](float* sums, int64_t ld, int64_t t, int64_t t_count, int64_t row, int64_t n,
                  uint8_t* scratch) {
                  const IntegerInputs from = {inputs.values + t * k_size, inputs.scales + t,
                                              at(inputs.sums, t * (k_size / shared))};
                  cpu.panels->products(sums, ld, from, t_count, blocks.row(row), blocks.dtype,
                                       k_size, n, scratch);
              });
}

}  // namespace hark
