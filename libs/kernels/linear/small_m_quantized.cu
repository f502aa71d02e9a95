// Products of few rows and quantised weights, and the values of such weights.
#include "kernels/linear/small_m_quantized.cuh"

#include "kernels/linear/quantized_row_tma.cuh"
#include "kernels/linear/quantized_whole_rows.cuh"
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

// The columns that are multiplied at a time of rows whose chunks the copy engine cannot bring: 952
// bytes of 896 values of q8_0, 3990 of 4864 of q6_k.
template <class Block>
constexpr int kWholeRowsColumns = 0;
template <>
constexpr int kWholeRowsColumns<BlockQ5_0> = 128;
template <>
constexpr int kWholeRowsColumns<BlockQ8_0> = 128;
template <>
constexpr int kWholeRowsColumns<BlockQ6K> = 256;

template <class Block>
using WholeRows = RowsOfTile<__half, Block, kWholeRowsColumns<Block>>;

template <class Block>
whole_rows::Shared divide_whole_rows(SmallMArgs& args, const uint8_t* w, int64_t stride) {
    return whole_rows::divide<WholeRows<Block>>(args, RowTiles(), w, stride, args.up * stride);
}

// Returns false, and does nothing, if whole_rows does not take the product.
template <class Block>
bool multiply_whole_rows(Context& ctx, SmallMArgs args, const __half* x, const uint8_t* w,
                         int64_t stride) {
    const auto shared = divide_whole_rows<Block>(args, w, stride);
    if (shared.stages == 0) return false;
    const auto start = [&](auto normed) {
        whole_rows::start<normed(), WholeRows<Block>>(ctx, args, shared, RowTiles(), x, w, stride,
                                                      true);
    };
    args.norm_weight ? start(std::true_type()) : start(std::false_type());
    return true;
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
            if constexpr (kWholeRowsColumns < Block >> 0)
                if (multiply_whole_rows<Block>(ctx, args, xs, ws, stride)) return;
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
    SmallMArgs args(x, x, w, {}, {.norm = norm, .gated = gated});  // y's type is not used here
    const auto stride = static_cast<int64_t>(row_bytes(w.values.dtype, args.k));
    const auto* ws = static_cast<const uint8_t*>(w.values.data);
    bool norms = false;
    with_block_type(w.values.dtype, [&](auto block) {
        using Block = decltype(block);
        if constexpr (requires { quantized_row::RowOfChunks<Block>::kPitch; })
            if (quantized_row::takes<Block>(args, ws, stride)) {
                norms = quantized_row::norms<Block>(args, norm);
                return;
            }
        if constexpr (kWholeRowsColumns < Block >> 0)
            norms = divide_whole_rows<Block>(args, ws, stride).stages > 0 &&
                    whole_rows::norms(args, norm);
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
