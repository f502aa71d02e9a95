#include "kernels/linear/streamed_m_wgmma.cuh"

#include <algorithm>

#include "kernels/linear/fp8_rows.cuh"
#include "kernels/linear/streamed_m.cuh"

namespace hark::cuda {
namespace {

using namespace streamed_m;

constexpr int64_t kLeastStreamedRows = 33, kMostStreamedRows = 128;

template <class Y, class S>
void launch_streamed(Context& ctx, Product args, const Tensor& x, const Tensor& w) {
    const auto kernel = streamed_kernel<Y, S>;
    const auto k = static_cast<uint64_t>(x.dim(-1));
    const auto map = [&](const Tensor& of, int64_t rows, uint32_t box) {
        return tile_map(of.dtype, of.data, {k, static_cast<uint64_t>(rows)}, {k}, {kStep, box});
    };
    const uint32_t w_box = args.up ? S::kColumns / 2 : kOutputs;
    const Maps maps = {map(x, args.rows, S::kRows), map(w, w.dim(0), w_box)};
    args.steps = static_cast<int>(ceil_div(x.dim(-1), kStep));
    const int all = args.tiles * args.steps, blocks = std::min(multiprocessors(), all);
    args.each = all / blocks, args.more = all % blocks;
    const Arena::Scope scope(ctx.arena);
    args.parts = ctx.arena.tensor(Dtype::f32, {blocks, S::kPart}).template as<float>();
    CUDA_CHECK(
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, S::kBytes));
    pdl_launch(ctx, kernel, static_cast<unsigned>(blocks), kThreads, S::kBytes, maps, args);
}

template <class Y>
void launch_streamed(Context& ctx, const Product& args, const Tensor& x, const Tensor& w) {
    if (args.rows <= 64) return launch_streamed<Y, Tile<64>>(ctx, args, x, w);
    launch_streamed<Y, Tile<128>>(ctx, args, x, w);
}

}  // namespace

bool has_streamed_m_product(const Tensor& y, const Tensor& x, const Matrix& w,
                            const Epilogue& then) {
    const int64_t rows = x.rows();
    const auto address = [](const Tensor& t) { return reinterpret_cast<uintptr_t>(t.data); };
    return kLeastStreamedRows <= rows && rows <= kMostStreamedRows && takes_fp8_rows(x, w) &&
           (y.dtype == x.dtype || y.dtype == Dtype::f32) && y.dim(-1) % 8 == 0 &&
           (address(y) | address(then.bias) | address(then.residual)) % 16 == 0 &&
           has_hopper_code(reinterpret_cast<const void*>(streamed_kernel<__half, Tile<64>>));
}

void streamed_m_product(Context& ctx, Tensor y, Tensor x, const Matrix& w, const Epilogue& then,
                        const Norm& norm, bool gated) {
    const auto n = static_cast<int>(y.dim(-1));
    Product args = {.y = y.data,
                    .bias = then.bias ? then.bias.as<float>() : nullptr,
                    .residual = then.residual.data,
                    .y_type = y.dtype,
                    .f = then.activation,
                    .rows = static_cast<int>(x.rows()),
                    .n = n,
                    .up = gated ? n : 0,
                    .tiles = static_cast<int>(ceil_div(n, gated ? kOutputs / 2 : kOutputs))};
    const Arena::Scope scope(ctx.arena);
    const Tensor flags = ctx.arena.tensor(Dtype::i32, {multiprocessors()});
    args.flags = static_cast<uint32_t*>(flags.data);
    const Fp8Rows rows = to_fp8_rows(ctx, x, norm, flags);
    args.x_scales = rows.scales.as<float>();
    args.w_scales = w.scales.as<float>();
    if (x.dtype == Dtype::f16) return launch_streamed<__half>(ctx, args, rows.values, w.values);
    launch_streamed<__nv_bfloat16>(ctx, args, rows.values, w.values);
}

}  // namespace hark::cuda
