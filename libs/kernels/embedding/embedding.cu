// embedding, add_positions and select_rows on the GPU.
#include "kernels/elementwise/rows.cuh"
#include "kernels/quant/quantized.cuh"

namespace hark::cuda {
namespace {

struct Embedding {
    const int *tokens, *position;
    const float *scales, *positions;  // of int8 and fp8; or null
    int64_t rows, channels, vocabulary, places;
    float scale;
};

template <int V, class W, class Y>
__global__ void embedding_kernel(Embedding args, Y* __restrict__ y, const W* __restrict__ table) {
    pdl_trigger();
    const int64_t row = row_of_thread();
    if (row >= args.rows) return;
    const int64_t token = args.tokens[row], place = args.position[row];
    const bool known = 0 <= token && token < args.vocabulary && 0 <= place && place < args.places;
    const float scale = known && args.scales ? args.scales[token] * args.scale : args.scale;
    for (int64_t c = int64_t{threadIdx.x} * V; c < args.channels; c += int64_t{blockDim.x} * V) {
        Pack<Y, V> out = nan_pack<Y, V>();
        if (known) {
            const Pack<W, V> words = load_pack<V>(table + token * args.channels + c);
            Pack<float, V> places{};
            if (args.positions) places = load_pack<V>(args.positions + place * args.channels + c);
            for (int v = 0; v < V; ++v)
                out.values[v] = from_f32<Y>(fmaf(to_f32(words.values[v]), scale, places.values[v]));
        }
        store_pack(y + row * args.channels + c, out);
    }
}

// The same from a quantised table.
template <class Block>
__global__ void quantized_embedding_kernel(Embedding args, __half* __restrict__ y,
                                           const uint8_t* __restrict__ table, int64_t row_bytes) {
    pdl_trigger();
    const int64_t row = row_of_thread();
    if (row >= args.rows) return;
    const int64_t token = args.tokens[row], place = args.position[row];
    const bool known = 0 <= token && token < args.vocabulary && 0 <= place && place < args.places;
    for (int64_t c = int64_t{threadIdx.x} * kBlockPack; c < args.channels;
         c += int64_t{blockDim.x} * kBlockPack) {
        Pack<__half, kBlockPack> out = nan_pack<__half, kBlockPack>();
        if (known) {
            const Pack<float, kBlockPack> words = load_blocks<Block>(table + token * row_bytes, c);
            const float* places =
                args.positions ? args.positions + place * args.channels + c : nullptr;
            for (int v = 0; v < kBlockPack; ++v)
                out.values[v] =
                    from_f32<__half>(fmaf(words.values[v], args.scale, places ? places[v] : 0.0f));
        }
        store_pack(y + row * args.channels + c, out);
    }
}

template <int V, class T>
__global__ void add_positions_kernel(T* x, const float* __restrict__ positions, int64_t rows,
                                     int64_t places, int64_t channels) {
    const int64_t row = row_of_thread();
    if (row >= rows) return;
    const float* from = positions + row % places * channels;
    for (int64_t c = int64_t{threadIdx.x} * V; c < channels; c += int64_t{blockDim.x} * V) {
        Pack<T, V> values = load_pack<V>(x + row * channels + c);
        const Pack<float, V> more = load_pack<V>(from + c);
        for (int v = 0; v < V; ++v)
            values.values[v] = from_f32<T>(to_f32(values.values[v]) + more.values[v]);
        store_pack(x + row * channels + c, values);
    }
}

template <int V, class X, class Y>
__global__ void select_kernel(Y* y, const X* x, const int* rows, int64_t count, int64_t rows_of_x,
                              int64_t channels) {
    pdl_trigger();
    const int64_t row = row_of_thread();
    const int64_t from = row < count ? rows[row] : -1;
    pdl_wait();
    if (row >= count) return;
    const bool known = 0 <= from && from < rows_of_x;
    for (int64_t c = int64_t{threadIdx.x} * V; c < channels; c += int64_t{blockDim.x} * V)
        store_pack(
            y + row * channels + c,
            known ? convert_pack<Y>(load_pack<V>(x + from * channels + c)) : nan_pack<Y, V>());
}

}  // namespace

void embedding(Context& ctx, Tensor y, Tensor tokens, Tensor position, const Matrix& table,
               Tensor positions, float scale) {
    const int64_t rows = tokens.dim(0), channels = table.values.dim(1);
    enter(ctx, {&y, &tokens, &position, &table.values, &table.scales, &positions});
    if (y.size() == 0) return;
    const bool packs = in_packs(channels, {y.data, table.values.data, positions.data});
    const RowGrid grid(rows, packs ? channels / kPack : channels);
    const bool scaled = has_row_scales(table.values.dtype);
    const Embedding args{tokens.as<int32_t>(),
                         position.as<int32_t>(),
                         scaled ? table.scales.as<float>() : nullptr,
                         positions ? positions.as<float>() : nullptr,
                         rows,
                         channels,
                         table.values.dim(0),
                         positions ? positions.dim(0) : INT32_MAX,
                         scale};
    // The first kernel of a step is launched as usual, after the copies at the start of the step.
    const auto launch = [&](auto y_value, auto w_value) {
        using Y = decltype(y_value);
        using W = decltype(w_value);
        const auto kernel = packs ? embedding_kernel<kPack, W, Y> : embedding_kernel<1, W, Y>;
        kernel<<<grid.blocks, grid.threads, 0, stream_of(ctx)>>>(
            args, static_cast<Y*>(y.data), static_cast<const W*>(table.values.data));
    };
    if (is_quantized(table.values.dtype)) {
        check_half("embedding", y);
        const RowGrid packs_grid(rows, channels / kBlockPack);
        with_block_type(table.values.dtype, [&](auto block) {
            quantized_embedding_kernel<decltype(block)>
                <<<packs_grid.blocks, packs_grid.threads, 0, stream_of(ctx)>>>(
                    args, static_cast<__half*>(y.data),
                    static_cast<const uint8_t*>(table.values.data),
                    static_cast<int64_t>(row_bytes(table.values.dtype, channels)));
        });
        CUDA_CHECK(cudaGetLastError());
        return;
    }
    with_float_type(y.dtype, [&](auto y_value) {
        if (table.values.dtype == Dtype::i8) return launch(y_value, int8_t{});
        if (table.values.dtype == Dtype::fp8) return launch(y_value, fp8_t{});
        with_float_type(table.values.dtype, [&](auto w_value) { launch(y_value, w_value); });
    });
    CUDA_CHECK(cudaGetLastError());
}

void add_positions(Context& ctx, Tensor x, Tensor positions) {
    enter(ctx, {&x, &positions});
    if (x.size() == 0) return;
    const int64_t places = positions.dim(0), channels = positions.dim(1);
    const float* from = positions.as<float>();
    const bool packs = in_packs(channels, {x.data, from});
    const RowGrid grid(x.rows(), packs ? channels / kPack : channels);
    with_float_type(x.dtype, [&](auto value) {
        using T = decltype(value);
        const auto kernel = packs ? add_positions_kernel<kPack, T> : add_positions_kernel<1, T>;
        kernel<<<grid.blocks, grid.threads, 0, stream_of(ctx)>>>(static_cast<T*>(x.data), from,
                                                                 x.rows(), places, channels);
    });
    CUDA_CHECK(cudaGetLastError());
}

void select_rows(Context& ctx, Tensor y, Tensor x, Tensor rows) {
    const int64_t channels = x.dim(-1), count = rows.dim(0);
    enter(ctx, {&y, &x, &rows});
    if (y.size() == 0) return;
    const bool packs = in_packs(channels, {y.data, x.data});
    const RowGrid grid(count, packs ? channels / kPack : channels);
    with_float_type(y.dtype, [&](auto y_value) {
        with_float_type(x.dtype, [&](auto x_value) {
            using X = decltype(x_value);
            using Y = decltype(y_value);
            const auto kernel = packs ? select_kernel<kPack, X, Y> : select_kernel<1, X, Y>;
            pdl_launch(ctx, kernel, grid.blocks, grid.threads, 0, static_cast<Y*>(y.data),
                       static_cast<const X*>(x.data), rows.as<int32_t>(), count, x.rows(),
                       channels);
        });
    });
}

}  // namespace hark::cuda
