#include "operations/speed/gpu_speed.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <vector>

#include "kernels/runtime/cuda_library.h"
#include "kernels/runtime/transfer.h"
#include "operations/speed/timing.h"

namespace hark {
namespace {

constexpr int64_t kProductSize = 8192;

Tensor in_order(Context& ctx, int64_t rows) {
    std::vector<int32_t> order(static_cast<size_t>(rows));
    std::iota(order.begin(), order.end(), 0);
    return to_device(ctx, Tensor(order.data(), Dtype::i32, {rows}));
}

}  // namespace

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

double gpu_copy_speed(Context& ctx) {
    constexpr int64_t kRows = 1 << 18, kChannels = 1 << 11;
    const Arena::Scope scope(ctx.arena);
    const Tensor x = ctx.arena.tensor(Dtype::f16, {kRows, kChannels});
    const Tensor y = ctx.arena.tensor(Dtype::f16, {kRows, kChannels});
    const Tensor rows = in_order(ctx, kRows);
    const double ms = gpu_ms(ctx, 5, [&] { select_rows(ctx, y, x, rows); });
    return 2.0 * static_cast<double>(x.bytes()) / ms * 1e-6;
}

double gpu_product_speed(Context& ctx, Dtype dtype, double seconds,
                         const std::function<void()>& meanwhile) {
    constexpr int64_t kSize = kProductSize;
    const Arena::Scope scope(ctx.arena);
    std::vector<float> values = normal_values(kSize * kSize, 3);
    const Tensor from = to_device(ctx, Tensor(values.data(), Dtype::f32, {kSize, kSize}));
    const Tensor x = ctx.arena.tensor(dtype, {kSize, kSize});
    const Tensor y = ctx.arena.tensor(dtype, {kSize, kSize});
    select_rows(ctx, x, from, in_order(ctx, kSize));  // rounds them
    const double one_ms = gpu_ms(ctx, 1, [&] { linear(ctx, y, x, {x, {}}); });
    constexpr int kRuns = 3;
    const int calls = std::clamp(static_cast<int>(seconds * 1000 / (kRuns + 1) / one_ms), 1, 200);
    const auto products = [&] {
        for (int i = 0; i < calls; ++i) linear(ctx, y, x, {x, {}});
    };
    const double ms = gpu_ms(ctx, kRuns, products);
    if (meanwhile) {
        products();
        meanwhile();
        cuda_runtime().synchronize(ctx);
    }
    return calls * 2.0 * kSize * kSize * kSize / ms * 1e-6;
}

TransferSpeed gpu_transfer_speed(Context& ctx) {
    constexpr int64_t kBytes = 64 << 20;
    const Arena::Scope scope(ctx.arena), host_scope(ctx.host_arena);
    const Tensor there = ctx.arena.tensor(Dtype::f32, {kBytes / 4});
    const Tensor here = ctx.host_arena.tensor(Dtype::f32, {kBytes / 4});
    const auto speed = [](double ms) { return static_cast<double>(kBytes) / ms * 1e-6; };
    const CudaRuntime& runtime = cuda_runtime();
    return {speed(gpu_ms(ctx, 5, [&] { runtime.upload(ctx, there.data, here.data, kBytes); })),
            speed(gpu_ms(ctx, 5, [&] { runtime.download(ctx, here.data, there.data, kBytes); }))};
}

}  // namespace hark
