// Products of quantised weights: for few rows directly from the blocks, each read once for up to
// eight rows of x. For many rows gemm.cu converts the weights.
#include "kernels/elementwise/rows.cuh"
#include "kernels/linear/simt.cuh"
#include "kernels/quant/quantized.cuh"

namespace hark::cuda {
namespace {

constexpr int kQuantizedThreads = 256;

template <class Block>
__global__ void dequantize_kernel(__half* to, const uint8_t* from, int64_t packs) {
    for (int64_t i = int64_t{blockIdx.x} * kQuantizedThreads + threadIdx.x; i < packs;
         i += int64_t{gridDim.x} * kQuantizedThreads)
        store_pack(to + i * kBlockPack,
                   convert_pack<__half>(load_blocks<Block>(from, i * kBlockPack)));
}

}  // namespace

void small_m_quantized(Context& ctx, Tensor y, Tensor x, const Matrix& w, const Epilogue& then) {
    check_half("linear", x);
    const SmallMArgs args(y, x, w, then);
    const int64_t bytes = static_cast<int64_t>(row_bytes(w.values.dtype, args.k));
    with_block_type(w.values.dtype, [&](auto block) {
        launch_simt<BlockRows<decltype(block)>>(ctx, args, static_cast<const __half*>(x.data),
                                                static_cast<const uint8_t*>(w.values.data), bytes);
    });
}

void dequantize(Context& ctx, Tensor to, Tensor from) {
    check_half("linear", to);
    const int64_t packs = from.size() / kBlockPack;
    const auto blocks =
        static_cast<unsigned>(std::min<int64_t>(ceil_div(packs, kQuantizedThreads), 132 * 16));
    with_block_type(from.dtype, [&](auto block) {
        dequantize_kernel<decltype(block)><<<blocks, kQuantizedThreads, 0, stream_of(ctx)>>>(
            static_cast<__half*>(to.data), static_cast<const uint8_t*>(from.data), packs);
    });
    CUDA_CHECK(cudaGetLastError());
}

}  // namespace hark::cuda
