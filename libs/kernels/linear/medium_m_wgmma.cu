#include "kernels/linear/medium_m_wgmma.cuh"

#include "kernels/linear/medium_m.cuh"

namespace hark::cuda {
namespace {

using namespace medium_m;

constexpr int64_t kLeastMediumRows = 33, kMostMediumRows = 128;
// Narrower or flatter weights are cuBLASLt's (docs/kernels/linear.md), and so are more than 64 rows
// of a product that is not gated.
constexpr int64_t kLeastMediumOutputs = 16384, kLeastMediumColumns = 2048;

constexpr int kNarrow = 128, kWide = 224;  // rows of W per tile

template <class T, class S>
void launch_medium(Context& ctx, const Product& args, const Tensor& x, const Tensor& w) {
    const auto kernel = medium_kernel<T, S>;
    const auto k = static_cast<uint64_t>(x.dim(-1));
    const auto map = [&](const Tensor& of, int64_t rows, uint32_t box) {
        return tile_map(of.dtype, of.data, {k, static_cast<uint64_t>(rows)}, {k * sizeof(T)},
                        {kStep, box});
    };
    const uint32_t w_box = args.up ? S::kColumns / 2 : S::kOutputs;
    const Maps maps = {map(x, args.rows, S::kRows), map(w, w.dim(0), w_box)};
    const auto blocks = ceil_div(args.n, S::outputs(args.up));
    CUDA_CHECK(
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, S::kBytes));
    pdl_launch(ctx, kernel, static_cast<unsigned>(blocks), kThreads, S::kBytes, maps, args);
}

template <class T>
void launch_medium(Context& ctx, const Product& args, const Tensor& x, const Tensor& w) {
    // The multiprocessor with most outputs is the last to end.
    const auto most = [&](int64_t tile) {
        return ceil_div(ceil_div(args.n, tile), multiprocessors()) * tile;
    };
    const bool is_wide = args.up && most(kWide / 2) < most(kNarrow / 2);
    if (args.rows <= 64)
        return is_wide ? launch_medium<T, Tile<64, kWide>>(ctx, args, x, w)
                       : launch_medium<T, Tile<64, kNarrow>>(ctx, args, x, w);
    is_wide ? launch_medium<T, Tile<128, kWide>>(ctx, args, x, w)
            : launch_medium<T, Tile<128, kNarrow>>(ctx, args, x, w);
}

}  // namespace

bool has_medium_m_product(const Tensor& y, const Tensor& x, const Matrix& w, const Epilogue& then,
                          bool gated) {
    const int64_t rows = x.rows(), n = y.dim(-1), k = x.dim(-1);
    const auto address = [](const Tensor& t) { return reinterpret_cast<uintptr_t>(t.data); };
    return kLeastMediumRows <= rows && rows <= (gated ? kMostMediumRows : 64) &&
           w.values.dim(0) >= kLeastMediumOutputs && k >= kLeastMediumColumns &&
           is_16_bit(x.dtype) && w.values.dtype == x.dtype &&
           (y.dtype == x.dtype || y.dtype == Dtype::f32) && !then.residual && n % 8 == 0 &&
           k % 8 == 0 &&
           (address(y) | address(x) | address(w.values) | address(then.bias)) % 16 == 0 &&
           has_hopper_code(reinterpret_cast<const void*>(medium_kernel<__half, Tile<64, kNarrow>>));
}

void medium_m_product(Context& ctx, Tensor y, Tensor x, const Matrix& w, const Epilogue& then,
                      bool gated) {
    const auto n = static_cast<int>(y.dim(-1));
    const Product args = {.y = y.data,
                          .bias = then.bias ? then.bias.as<float>() : nullptr,
                          .y_type = y.dtype,
                          .f = then.activation,
                          .rows = static_cast<int>(x.rows()),
                          .n = n,
                          .up = gated ? n : 0,
                          .steps = static_cast<int>(ceil_div(x.dim(-1), kStep))};
    if (x.dtype == Dtype::f16) return launch_medium<__half>(ctx, args, x, w.values);
    launch_medium<__nv_bfloat16>(ctx, args, x, w.values);
}

}  // namespace hark::cuda
