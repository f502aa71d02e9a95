// What a step of one row costs in addition to its bytes: edges between kernels, barriers inside
// one, and memory that is read with few bytes in flight.
#include "kernels/cuda_timing.h"
#include "ladder/ladder.h"

namespace hark::ladder {
namespace {

constexpr int kThreads = 128, kBlocksPerSm = 4;
constexpr int kEdges = 200, kBarriers = 1000;

__global__ void empty_kernel() {}

// Lets the next kernel start, then waits for the one before it.
__global__ void programmatic_kernel() {
#if __CUDA_ARCH__ >= 900
    cudaTriggerProgrammaticLaunchCompletion();
    cudaGridDependencySynchronize();
#endif
}

// All blocks meet `rounds` times at one counter, which begins at 0.
__global__ void barrier_kernel(unsigned* counter, int rounds) {
    for (int round = 1; round <= rounds; ++round) {
        __syncthreads();
        if (threadIdx.x == 0) {
            __threadfence();
            atomicAdd(counter, 1u);
            const volatile unsigned* arrived = counter;
            while (*arrived < round * gridDim.x) {
            }
            __threadfence();
        }
        __syncthreads();
    }
}

// Each thread has kLoads loads of 16 bytes in flight.
template <int kLoads>
__global__ void __launch_bounds__(kThreads)
    read_kernel(const uint4* data, int64_t n, unsigned* to) {
    const int64_t threads = int64_t{gridDim.x} * kThreads;
    unsigned sum = 0;
    for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i + (kLoads - 1) * threads < n;
         i += kLoads * threads) {
        uint4 loaded[kLoads];
#pragma unroll
        for (int j = 0; j < kLoads; ++j) loaded[j] = __ldcs(data + i + j * threads);
#pragma unroll
        for (int j = 0; j < kLoads; ++j)
            sum ^= loaded[j].x ^ loaded[j].y ^ loaded[j].z ^ loaded[j].w;
    }
    if (sum == 0x5eed) *to = sum;  // so that the loads are needed
}

double time_of(Context& ctx, const std::function<void()>& work) {
    return microseconds_in_place(
        ctx, [] {}, work);
}

// Microseconds per edge of a graph that is a chain of kEdges kernels without work.
double edge_cost(Context& ctx, int blocks, bool programmatic) {
    const auto stream = static_cast<cudaStream_t>(ctx.stream);
    cudaLaunchAttribute attribute{};
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config{};
    config.gridDim = dim3(static_cast<unsigned>(blocks));
    config.blockDim = dim3(kThreads);
    config.stream = stream;
    config.attrs = &attribute;
    config.numAttrs = programmatic ? 1 : 0;
    cudaGraph_t graph;
    cudaGraphExec_t replay;
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "capture");
    for (int i = 0; i < kEdges; ++i)
        check(cudaLaunchKernelEx(&config, programmatic ? programmatic_kernel : empty_kernel),
              "launch");
    check(cudaStreamEndCapture(stream, &graph), "capture");
    check(cudaGraphInstantiate(&replay, graph, 0), "graph");
    const double us = time_of(ctx, [&] { check(cudaGraphLaunch(replay, stream), "launch"); });
    cudaGraphExecDestroy(replay);
    cudaGraphDestroy(graph);
    return us / kEdges;
}

// Microseconds per meeting of one block per multiprocessor.
double barrier_cost(Context& ctx, int blocks, unsigned* counter) {
    const auto stream = static_cast<cudaStream_t>(ctx.stream);
    int rounds = kBarriers;
    void* args[] = {&counter, &rounds};
    const double us = time_of(ctx, [&] {
        check(cudaMemsetAsync(counter, 0, sizeof(unsigned), stream), "memset");
        check(cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(barrier_kernel),
                                          dim3(static_cast<unsigned>(blocks)), dim3(kThreads), args,
                                          0, stream),
              "launch");
    });
    return us / kBarriers;
}

template <int kLoads>
Cost read_speed(const CostArgs& of, int multiprocessors) {
    const auto n = static_cast<int64_t>(of.bytes / sizeof(uint4));
    const double us = time_of(of.ctx, [&] {
        read_kernel<kLoads><<<multiprocessors * kBlocksPerSm, kThreads, 0,
                              static_cast<cudaStream_t>(of.ctx.stream)>>>(
            static_cast<const uint4*>(of.data), n, of.counter);
    });
    check(cudaGetLastError(), "read");
    constexpr int kKilobytes = kLoads * kThreads * kBlocksPerSm * 16 / 1024;
    return {"read", std::to_string(kKilobytes) + " KB in flight per multiprocessor",
            static_cast<double>(of.bytes) / us * 1e-6, "TB/s"};
}

}  // namespace

std::vector<Cost> launch_costs(const CostArgs& of) {
    int device = 0, multiprocessors = 0;
    check(cudaGetDevice(&device), "device");
    check(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device),
          "device");
    return {{"graph edge", "1 block", edge_cost(of.ctx, 1, false), "us"},
            {"graph edge", "a block per multiprocessor", edge_cost(of.ctx, multiprocessors, false),
             "us"},
            {"programmatic edge", "a block per multiprocessor",
             edge_cost(of.ctx, multiprocessors, true), "us"},
            {"barrier", "one counter, a block per multiprocessor",
             barrier_cost(of.ctx, multiprocessors, of.counter), "us"},
            read_speed<1>(of, multiprocessors),
            read_speed<2>(of, multiprocessors),
            read_speed<4>(of, multiprocessors),
            read_speed<8>(of, multiprocessors),
            read_speed<16>(of, multiprocessors)};
}

}  // namespace hark::ladder
