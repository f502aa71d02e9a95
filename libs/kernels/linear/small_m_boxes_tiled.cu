// box_kernel's shapes and launches.
#include "kernels/cuda/clusters.cuh"
#include "kernels/linear/small_m_boxes.cuh"
#include "kernels/linear/small_m_boxes_product.cuh"

namespace hark::cuda {
namespace {

using namespace small_m_boxes;

template <class T, class S>
void launch_boxes(Context& ctx, const SmallMArgs& args, const Tensor& x, const Tensor& w) {
    const auto kernel = box_kernel<T, S>;
    const int slots = S::kSplit == 1 ? 0 : 1 + args.slices - args.slices / S::kSplit;
    const int bytes = S::kStages * S::kStageBytes + slots * S::kSlotBytes + 1024;  // to align it
    const int64_t tiles = ceil_div(args.rows, S::kRows) * ceil_div(args.n, S::kOutputs);
    ClusterLaunch(ctx, kernel, S::kSplit, kThreads, bytes)
        .start(tiles, maps_of<S>(args, x, w), args);
}

// As many blocks per tile as the multiprocessors allow. The stages leave room for the sums of that
// many slices. Measured on an H200 (docs/kernels/linear.md); the choice does not change a row's
// bits.
template <class T>
void choose(Context& ctx, const SmallMArgs& args, const Tensor& x, const Tensor& w) {
    const int64_t tiles = ceil_div(args.rows, 128) * ceil_div(args.n, 64);
    const auto fits = [&](int split) {
        return args.slices >= split && tiles * split <= multiprocessors();
    };
    if (args.slices > 10 && fits(4)) return launch_boxes<T, Shape<128, 64, 4, 4>>(ctx, args, x, w);
    if (args.slices <= 10 && fits(5)) return launch_boxes<T, Shape<128, 64, 5, 6>>(ctx, args, x, w);
    if (args.slices <= 10 && fits(2)) return launch_boxes<T, Shape<128, 64, 2, 5>>(ctx, args, x, w);
    launch_boxes<T, Shape<128, 64, 1, 8>>(ctx, args, x, w);
}

}  // namespace

bool has_box_form(const SmallMArgs& args, const Tensor& x, const Tensor& w) {
    constexpr int64_t kLeastRows = 65, kMostRows = 128;
    return kLeastRows <= args.rows && args.rows <= kMostRows && args.k % kUnit == 0 &&
           args.up == 0 && is_16_bit(x.dtype) && w.dtype == x.dtype;
}

bool takes_boxes(const SmallMArgs& args, const Tensor& x, const Tensor& w) {
    constexpr int64_t kLeastColumns = 1024;
    const auto address = [](const void* p) { return reinterpret_cast<uintptr_t>(p); };
    return has_box_form(args, x, w) && args.n < kVocabulary && args.k >= kLeastColumns &&
           args.n % kVector == 0 && args.y_type == x.dtype &&
           (address(args.y) | address(args.residual)) % 16 == 0 &&
           has_hopper_code(reinterpret_cast<const void*>(box_kernel<__half, Shape<128, 64, 1, 8>>));
}

void box_product(Context& ctx, const SmallMArgs& args, const Tensor& x, const Tensor& w) {
    if (x.dtype == Dtype::f16) return choose<__half>(ctx, args, x, w);
    choose<__nv_bfloat16>(ctx, args, x, w);
}

}  // namespace hark::cuda
