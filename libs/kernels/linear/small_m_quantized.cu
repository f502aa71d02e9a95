// Products of few rows and quantised weights, and the values of such weights.
#include "kernels/linear/small_m_quantized.cuh"

#include "kernels/linear/quantized_row_tma.cuh"
#include "kernels/linear/small_m_row.cuh"

namespace hark::cuda {
namespace {

constexpr int kQuantizedThreads = 256;

template <class Block, class T>
__global__ void dequantize_kernel(T* to, const uint8_t* from, int64_t packs) {
    for (int64_t i = int64_t{blockIdx.x} * kQuantizedThreads + threadIdx.x; i < packs;
         i += int64_t{gridDim.x} * kQuantizedThreads)
        store_pack(to + i * kBlockPack, convert_pack<T>(load_blocks<Block>(from, i * kBlockPack)));
}

}  // namespace

void small_m_quantized(Context& ctx, Tensor y, Tensor x, const Matrix& w, const Epilogue& then,
                       const LinearFusion& with) {
    check_half("linear", x);
    const SmallMArgs args(y, x, w, then, with);
    const int64_t stride = static_cast<int64_t>(row_bytes(w.values.dtype, args.k));
    with_block_type(w.values.dtype, [&](auto block) {
        using Block = decltype(block);
        const auto* xs = static_cast<const __half*>(x.data);
        const auto* ws = static_cast<const uint8_t*>(w.values.data);
        const auto launch = [&]<class Rows>() {
            launch_quantized<Block, Rows>(ctx, args, RowTiles(), ceil_div(args.rows, Rows::kRows),
                                          xs, ws, stride);
        };
        if (args.rows == 1 && !ctx.batch_invariant) {
            if constexpr (requires { quantized_row::RowOfChunks<Block>::kPitch; })
                if (quantized_row::takes<Block>(args, ws, stride))
                    return quantized_row::launch<Block>(ctx, args, xs, ws, stride);
            return launch.template operator()<OneRow<__half, Block>>();
        }
        if (args.rows > 8 && has_room_for_many<Block>(args))
            return launch.template operator()<ManyRows<__half, Block, 4>>();
        launch.template operator()<ManyRows<__half, Block, 1>>();
    });
}

bool norms_quantized_row(const Context& ctx, const Tensor& x, const Matrix& w, const Norm& norm,
                         bool gated) {
    if (!is_quantized(w.values.dtype) || x.rows() != 1 || x.dtype != Dtype::f16 ||
        ctx.batch_invariant)
        return false;
    const SmallMArgs args(x, x, w, {}, {.gated = gated});  // y's type is not used here
    const auto stride = static_cast<int64_t>(row_bytes(w.values.dtype, args.k));
    bool norms = false;
    with_block_type(w.values.dtype, [&](auto block) {
        using Block = decltype(block);
        if constexpr (requires { quantized_row::RowOfChunks<Block>::kPitch; })
            norms = quantized_row::takes<Block>(args, w.values.data, stride) &&
                    quantized_row::norms<Block>(args, norm);
    });
    return norms;
}

void dequantize(Context& ctx, Tensor to, Tensor from) {
    require(is_16_bit(to.dtype), "dequantize: expected f16 or bf16, found ", to);
    const int64_t packs = from.size() / kBlockPack;
    const auto blocks =
        static_cast<unsigned>(std::min<int64_t>(ceil_div(packs, kQuantizedThreads), 132 * 16));
    const auto launch = [&](auto value) {
        using T = decltype(value);
        with_block_type(from.dtype, [&](auto block) {
            dequantize_kernel<decltype(block), T><<<blocks, kQuantizedThreads, 0, stream_of(ctx)>>>(
                static_cast<T*>(to.data), static_cast<const uint8_t*>(from.data), packs);
        });
    };
    if (to.dtype == Dtype::f16) {
        launch(__half());
    } else {
        launch(__nv_bfloat16());
    }
    CUDA_CHECK(cudaGetLastError());
}

}  // namespace hark::cuda
