#include "gpu_harness.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <vector>

#include "harness.h"
#include "kernels/runtime/cuda_library.h"
#include "kernels/runtime/transfer.h"

namespace hark::bench {

double gpu_ms(Context& ctx, int runs, const std::function<void()>& work) {
    std::vector<double> times;
    for (int run = -1; run < runs; ++run) {
        cuda_runtime().synchronize(ctx);
        const auto begin = std::chrono::steady_clock::now();
        work();
        cuda_runtime().synchronize(ctx);
        const std::chrono::duration<double, std::milli> ms =
            std::chrono::steady_clock::now() - begin;
        if (run >= 0) times.push_back(ms.count());
    }
    std::nth_element(times.begin(), times.begin() + runs / 2, times.end());
    return times[static_cast<size_t>(runs / 2)];
}

double copy_speed(Context& ctx) {
    constexpr int64_t kRows = 1 << 18, kChannels = 1 << 11;
    const Arena::Scope scope(ctx.arena);
    const Tensor x = ctx.arena.tensor(Dtype::f16, {kRows, kChannels});
    const Tensor y = ctx.arena.tensor(Dtype::f16, {kRows, kChannels});
    std::vector<int32_t> order(kRows);
    std::iota(order.begin(), order.end(), 0);
    const Tensor rows = to_device(ctx, Tensor(order.data(), Dtype::i32, {kRows}));
    const double ms = gpu_ms(ctx, 5, [&] { select_rows(ctx, y, x, rows); });
    return 2.0 * static_cast<double>(x.bytes()) / ms * 1e-6;
}

double product_speed(Context& ctx, Dtype dtype) {
    constexpr int64_t kSize = 8192;
    const Arena::Scope scope(ctx.arena);
    const std::vector<float> values = random_values(kSize * kSize, 3);
    const Tensor from =
        to_device(ctx, Tensor(const_cast<float*>(values.data()), Dtype::f32, {kSize, kSize}));
    std::vector<int32_t> order(kSize);
    for (int32_t i = 0; i < kSize; ++i) order[static_cast<size_t>(i)] = i;
    const Tensor rows = to_device(ctx, Tensor(order.data(), Dtype::i32, {kSize}));
    const Tensor x = ctx.arena.tensor(dtype, {kSize, kSize});
    const Tensor y = ctx.arena.tensor(dtype, {kSize, kSize});
    select_rows(ctx, x, from, rows);  // rounds them
    constexpr int kCalls = 20;
    const double ms = gpu_ms(ctx, 3, [&] {
        for (int i = 0; i < kCalls; ++i) linear(ctx, y, x, {x, {}});
    });
    return kCalls * 2.0 * kSize * kSize * kSize / ms * 1e-6;
}

}  // namespace hark::bench
