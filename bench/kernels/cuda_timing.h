// How the operations of libhark-cuda.so are timed: random tensors, and replays between two events.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "core/fp8.h"
#include "core/half.h"
#include "kernels/ops_table.h"
#include "kernels/runtime/cuda_library.h"

namespace hark {

inline constexpr int kReplays = 9, kCallsInGraph = 24;
inline constexpr size_t kRotatedBytes = size_t{300} << 20;  // several times the L2 cache

inline std::vector<std::string_view> chosen;  // the command line's words

inline bool is_chosen(std::string_view what) {
    return chosen.empty() || std::any_of(chosen.begin(), chosen.end(),
                                         [&](auto word) { return what.starts_with(word); });
}

inline void check(cudaError_t status, const char* what) {
    require(status == cudaSuccess, what, ": ", cudaGetErrorString(status));
}

inline void put(std::byte* to, Dtype dtype, int64_t i, float x) {
    if (dtype == Dtype::f32) reinterpret_cast<float*>(to)[i] = x;
    if (dtype == Dtype::f16) reinterpret_cast<f16_t*>(to)[i] = to_f16(x);
    if (dtype == Dtype::bf16) reinterpret_cast<bf16_t*>(to)[i] = to_bf16(x);
    if (dtype == Dtype::fp8) reinterpret_cast<fp8_t*>(to)[i] = to_fp8(x * 100);
    if (dtype == Dtype::i8)
        reinterpret_cast<int8_t*>(to)[i] = static_cast<int8_t>(std::clamp(x * 40, -127.f, 127.f));
}

// A byte of a quantised block of any type: below 0x3c, so that a scale made of two is a number
// below 1.
inline std::byte block_byte(float x) {
    return static_cast<std::byte>(std::min(static_cast<int>(std::fabs(x) * 20), 0x3b));
}

// Random values, drawn once and repeated after a prime number of them, each tensor's from another
// one on: zeros run faster than what models compute with.
inline Tensor random_tensor(Context& ctx, Dtype dtype, std::initializer_list<int64_t> shape) {
    constexpr int64_t kPeriod = 1048573;
    static const std::vector<float> drawn = [] {
        std::mt19937 generator(1);
        std::normal_distribution<float> normal;
        std::vector<float> values(kPeriod);
        for (float& value : values) value = normal(generator);
        return values;
    }();
    static int64_t first = 0;
    first = (first + 611953) % kPeriod;
    const Tensor tensor = ctx.arena.tensor(dtype, shape);
    std::vector<std::byte> bytes(tensor.bytes());
    const bool blocks = is_quantized(dtype);
    const int64_t units = blocks ? static_cast<int64_t>(bytes.size()) : tensor.size();
    const int64_t own = std::min(kPeriod, units);
    for (int64_t i = 0; i < own; ++i) {
        const float value = drawn[static_cast<size_t>((first + i) % kPeriod)];
        if (blocks)
            bytes[static_cast<size_t>(i)] = block_byte(value);
        else
            put(bytes.data(), dtype, i, value);
    }
    const size_t period = static_cast<size_t>(own) * (blocks ? 1 : size_of(dtype));
    for (size_t at = period; at < bytes.size(); at += period)
        std::copy_n(bytes.data(), std::min(period, bytes.size() - at), bytes.data() + at);
    cuda_runtime().upload(ctx, tensor.data, bytes.data(), bytes.size());
    return tensor;
}

inline Tensor ids(Context& ctx, std::initializer_list<int64_t> shape,
                  const std::vector<int32_t>& values) {
    const Tensor tensor = ctx.arena.tensor(Dtype::i32, shape);
    cuda_runtime().upload(ctx, tensor.data, values.data(), tensor.bytes());
    return tensor;
}

// b sequences of `queries` rows over `length` keys each.
inline BatchLayout ragged(Context& ctx, int b, int64_t queries, int64_t length) {
    std::vector<int32_t> starts, slots, lengths(static_cast<size_t>(b), int32_t(length));
    for (int i = 0; i <= b; ++i) starts.push_back(static_cast<int32_t>(i * queries));
    for (int i = 0; i < b; ++i) slots.push_back(i);
    return {ids(ctx, {b + 1}, starts), ids(ctx, {b}, slots), ids(ctx, {b}, lengths), queries,
            length};
}

// Median microseconds of call(i), i counting up: replays of a graph of calls, between two events.
inline double microseconds(Context& ctx, const std::function<void(int)>& call) {
    for (int i = 0; i < 3; ++i) call(i);
    cuda_runtime().synchronize(ctx);
    const auto stream = static_cast<cudaStream_t>(ctx.stream);
    cudaGraph_t graph;
    cudaGraphExec_t replay;
    cudaEvent_t begin, end;
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "capture");
    for (int i = 0; i < kCallsInGraph; ++i) call(i);
    check(cudaStreamEndCapture(stream, &graph), "capture");
    check(cudaGraphInstantiate(&replay, graph, 0), "graph");
    check(cudaEventCreate(&begin), "event");
    check(cudaEventCreate(&end), "event");
    std::vector<float> times;
    for (int i = 0; i < kReplays + 2; ++i) {
        check(cudaEventRecord(begin, stream), "event");
        check(cudaGraphLaunch(replay, stream), "launch");
        check(cudaEventRecord(end, stream), "event");
        check(cudaEventSynchronize(end), "graph");
        float ms = 0;
        check(cudaEventElapsedTime(&ms, begin, end), "event");
        if (i >= 2) times.push_back(ms * 1000 / kCallsInGraph);
    }
    std::sort(times.begin(), times.end());
    cudaGraphExecDestroy(replay);
    cudaGraphDestroy(graph);
    return times[times.size() / 2];
}

inline double bytes_of(std::initializer_list<Tensor> tensors) {
    double bytes = 0;
    for (const Tensor& tensor : tensors) bytes += static_cast<double>(tensor.bytes());
    return bytes;
}

// The card's own speed in this run: the product of operations/speed/gpu_speed.h, and CUDA's copy of
// 1 GiB.
struct Limits {
    double f32 = 0, f16 = 0, bf16 = 0;  // TFLOP/s
    double copy = 0;                    // TB/s, read and written
};
inline Limits limits;

// A row: FLOPs and bytes are what the operation must do at least; the fraction is the time that
// they would take at the limits, over the time taken. `dtype` is that of the weights where there
// are any; those of 8 bits and fewer are multiplied in f16.
inline void print(const char* what, Dtype dtype, const std::string& shape, double us, double flops,
                  double bytes) {
    const double product = dtype == Dtype::f32    ? limits.f32
                           : dtype == Dtype::bf16 ? limits.bf16
                                                  : limits.f16;
    const double least = std::max(flops * 1e-6 / product, bytes * 1e-6 / limits.copy);
    std::printf("%s\t%s\t%s\t%.2f\t%.1f\t%.3f\t%.2f\n", what, name_of(dtype), shape.c_str(), us,
                flops / us * 1e-6, bytes / us * 1e-6, least / us);
    std::fflush(stdout);
}

// As many tensors as it takes for none to be in the L2 cache when its turn comes again.
inline std::vector<Tensor> rotated(Context& ctx, Dtype dtype,
                                   std::initializer_list<int64_t> shape) {
    std::vector<Tensor> made;
    size_t bytes = 0;
    while (bytes < kRotatedBytes && made.size() < kCallsInGraph) {
        made.push_back(random_tensor(ctx, dtype, shape));
        bytes += made.back().bytes();
    }
    return made;
}

// Median microseconds of one call, each after prepare(), which is not timed: for what works in
// place.
inline double microseconds_in_place(Context& ctx, const std::function<void()>& prepare,
                                    const std::function<void()>& call) {
    const auto stream = static_cast<cudaStream_t>(ctx.stream);
    cudaEvent_t begin, end;
    check(cudaEventCreate(&begin), "event");
    check(cudaEventCreate(&end), "event");
    std::vector<float> times;
    for (int i = 0; i < kReplays + 2; ++i) {
        prepare();
        check(cudaEventRecord(begin, stream), "event");
        call();
        check(cudaEventRecord(end, stream), "event");
        check(cudaEventSynchronize(end), "call");
        float ms = 0;
        check(cudaEventElapsedTime(&ms, begin, end), "event");
        if (i >= 2) times.push_back(ms * 1000);
    }
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
}

// cuda_rows.cc: what inference needs next to products and attention.
void time_rows(Context& ctx);

// cuda_training.cc: what training needs next to products and attention.
void time_training(Context& ctx);

// cuda_decoder.cc: a step of one row of Llama's and Qwen's shapes.
void time_decoder(Context& ctx);

// cuda_experts.cc: a step of one row through mixtures of experts.
void time_experts(Context& ctx);

}  // namespace hark
