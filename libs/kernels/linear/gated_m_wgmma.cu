#include "kernels/linear/gated_m_wgmma.cuh"

#include "kernels/cuda/clusters.cuh"
#include "kernels/linear/gated_m.cuh"

namespace hark::cuda {
namespace {

using namespace gated_m;

// Products of fewer columns are cuBLASLt's and a pass for the activation (docs/kernels/linear.md),
// as are more rows and such that fill less of the tile.
constexpr int64_t kLeastGatedRows = 192, kMostGatedRows = Shape::kRows, kLeastGatedColumns = 2048;

// Whether n outputs fill three quarters of the rounds of all multiprocessors.
bool fills_rounds(int64_t n) {
    const int64_t tiles = ceil_div(n, Shape::kOutputs), at_once = multiprocessors();
    return 4 * tiles >= 3 * ceil_div(tiles, at_once) * at_once;
}

template <class T>
void launch_gated(Context& ctx, const Product& args, const Tensor& x, const Tensor& w) {
    constexpr int kBytes = sizeof(Shared<T, Shape>) + 1024;  // 1024: to align it
    const auto map = [](const Tensor& of, uint32_t rows) {
        const auto k = static_cast<uint64_t>(of.dim(-1)), n = static_cast<uint64_t>(of.rows());
        return tile_map(of.dtype, of.data, {k, n}, {k * sizeof(T)}, {kDepth<T>, rows});
    };
    const Maps maps = {map(x, Shape::kRows / kPair), map(w, Shape::kOutputs)};
    ClusterLaunch start(ctx, gated_kernel<T, Shape>, kPair, Shape::kThreads, kBytes);
    start.start(ceil_div(args.n, kPair * Shape::kOutputs), maps, args);
}

}  // namespace

bool has_gated_m_product(const Tensor& y, const Tensor& x, const Matrix& w, const Epilogue& then) {
    const int64_t rows = x.rows(), n = y.dim(-1), k = x.dim(-1);
    const auto address = [](const Tensor& t) { return reinterpret_cast<uintptr_t>(t.data); };
    return kLeastGatedRows <= rows && rows <= kMostGatedRows && k >= kLeastGatedColumns &&
           n % 8 == 0 && k % 8 == 0 && fills_rounds(n) && is_16_bit(x.dtype) &&
           w.values.dtype == x.dtype && y.dtype == x.dtype &&
           (address(y) | address(x) | address(w.values)) % 16 == 0 && !then.bias &&
           !then.residual &&
           (then.activation == Activation::silu || then.activation == Activation::gelu_tanh) &&
           has_hopper_code(reinterpret_cast<const void*>(gated_kernel<__half, Shape>));
}

void gated_m_product(Context& ctx, Tensor y, Tensor x, const Matrix& w, Activation activation) {
    const Product args = {.y = y.data,
                          .rows = static_cast<int>(x.rows()),
                          .n = static_cast<int>(y.dim(-1)),
                          .steps = static_cast<int>(ceil_div(x.dim(-1), kDepth<__half>)),
                          .is_gelu = activation == Activation::gelu_tanh};
    if (x.dtype == Dtype::f16) return launch_gated<__half>(ctx, args, x, w.values);
    launch_gated<__nv_bfloat16>(ctx, args, x, w.values);
}

}  // namespace hark::cuda
