#include "kernels/runtime/upload.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <thread>
#include <vector>

#include "kernels/cuda/cuda_common.cuh"

namespace hark::cuda {
namespace {

constexpr size_t kBuffer = size_t{16} << 20;
constexpr int kBuffers = 3;
constexpr size_t kMostThreads = 8;

void copy_in_parallel(std::byte* to, const std::byte* from, size_t bytes) {
    const size_t cores = std::max(1u, std::thread::hardware_concurrency());
    const size_t threads = std::min(kMostThreads, cores);
    const size_t part = (bytes / threads + 4096) / 4096 * 4096;
    std::vector<std::jthread> helpers;  // joined when they go
    for (size_t begin = part; begin < bytes; begin += part)
        helpers.emplace_back(
            [=] { std::memcpy(to + begin, from + begin, std::min(part, bytes - begin)); });
    std::memcpy(to, from, std::min(part, bytes));
}

// One stream of copies per GPU that is used. Lives as long as the process: CUDA may be gone before
// destructors run.
struct Uploader {
    struct Buffer {
        std::byte* memory = nullptr;
        cudaEvent_t copied = nullptr;
    };

    Uploader() {
        CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
        for (Buffer& buffer : buffers) {
            CUDA_CHECK(cudaMallocHost(reinterpret_cast<void**>(&buffer.memory), kBuffer));
            CUDA_CHECK(cudaEventCreateWithFlags(&buffer.copied, cudaEventDisableTiming));
        }
    }

    void copy(std::byte* to, const std::byte* from, size_t bytes) {
        int next = 0;
        for (size_t begin = 0; begin < bytes; begin += kBuffer, next = (next + 1) % kBuffers) {
            const size_t size = std::min(kBuffer, bytes - begin);
            CUDA_CHECK(cudaEventSynchronize(buffers[next].copied));
            copy_in_parallel(buffers[next].memory, from + begin, size);
            CUDA_CHECK(cudaMemcpyAsync(to + begin, buffers[next].memory, size,
                                       cudaMemcpyHostToDevice, stream));
            CUDA_CHECK(cudaEventRecord(buffers[next].copied, stream));
        }
        CUDA_CHECK(cudaStreamSynchronize(stream));
    }

    cudaStream_t stream = nullptr;
    Buffer buffers[kBuffers];
};

// That of the current GPU.
Uploader& uploader() {
    static auto* const all = new std::vector<Uploader*>;
    int device = 0;
    CUDA_CHECK(cudaGetDevice(&device));
    all->resize(std::max(all->size(), static_cast<size_t>(device) + 1));
    Uploader*& found = (*all)[static_cast<size_t>(device)];
    if (!found) found = new Uploader;
    return *found;
}

}  // namespace

void write_gpu_memory(void* to, const void* from, size_t bytes) {
    if (bytes >= kBuffer / 4) {
        static std::mutex one_at_a_time;
        const std::lock_guard<std::mutex> lock(one_at_a_time);
        return uploader().copy(static_cast<std::byte*>(to), static_cast<const std::byte*>(from),
                               bytes);
    }
    // For pageable memory cudaMemcpy returns before the bytes have arrived, and contexts' streams
    // do not wait for the default one.
    CUDA_CHECK(cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice));
    CUDA_CHECK(cudaStreamSynchronize(cudaStreamLegacy));
}

}  // namespace hark::cuda
