#include "kernels/runtime/upload.h"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "kernels/cuda/cuda_common.cuh"

namespace hark::cuda {
namespace {

constexpr size_t kLaneBytes = size_t{1} << 20;
constexpr size_t kMostLanes = 32;

// A stream and its pinned buffer.
struct Lane {
    cudaStream_t stream = nullptr;
    std::byte* buffer = nullptr;

    Lane() = default;
    Lane(const Lane&) = delete;
    ~Lane() {
        if (buffer) cudaFreeHost(buffer);
        if (stream) cudaStreamDestroy(stream);
    }

    void copy(std::byte* to, const std::byte* from, size_t bytes) const {
        for (size_t begin = 0; begin < bytes; begin += kLaneBytes) {
            const size_t size = std::min(kLaneBytes, bytes - begin);
            std::memcpy(buffer, from + begin, size);
            CUDA_CHECK(cudaMemcpyAsync(to + begin, buffer, size, cudaMemcpyHostToDevice, stream));
            CUDA_CHECK(cudaStreamSynchronize(stream));
        }
    }
};

// Of the current GPU.
std::unique_ptr<Lane> make_lane() {
    auto lane = std::make_unique<Lane>();
    CUDA_CHECK(cudaMallocHost(reinterpret_cast<void**>(&lane->buffer), kLaneBytes));
    CUDA_CHECK(cudaStreamCreateWithFlags(&lane->stream, cudaStreamNonBlocking));
    return lane;
}

// The lanes of a GPU, made when they are first needed.
class Lanes {
  public:
    Lanes() { free_.reserve(kMostLanes); }

    // Waits for a lane if all are taken. The GPU is the current one.
    std::unique_ptr<Lane> take() {
        std::unique_lock<std::mutex> lock(mutex_);
        if (free_.empty() && made_ < kMostLanes) {
            free_.push_back(make_lane());
            ++made_;
        }
        given_back_.wait(lock, [&] { return !free_.empty(); });
        std::unique_ptr<Lane> lane = std::move(free_.back());
        free_.pop_back();
        return lane;
    }

    void give_back(std::unique_ptr<Lane> lane) {
        {
            const std::lock_guard<std::mutex> lock(mutex_);
            free_.push_back(std::move(lane));
        }
        given_back_.notify_one();
    }

  private:
    std::mutex mutex_;
    std::condition_variable given_back_;
    std::vector<std::unique_ptr<Lane>> free_;
    size_t made_ = 0;
};

// They live as long as the process: CUDA may be gone before destructors run.
Lanes& lanes_of(int device) {
    static std::mutex mutex;
    static auto* const all = new std::map<int, Lanes>;
    const std::lock_guard<std::mutex> lock(mutex);
    return (*all)[device];
}

// A lane for as long as this lives.
struct Lease {
    explicit Lease(Lanes& of) : lanes(of), lane(of.take()) {}
    Lease(const Lease&) = delete;
    ~Lease() { lanes.give_back(std::move(lane)); }

    Lanes& lanes;
    std::unique_ptr<Lane> lane;
};

}  // namespace

void write_gpu_memory(int index, void* to, const void* from, size_t bytes) {
    // Before any other call, which in a new thread would make a context on GPU 0.
    CUDA_CHECK(cudaSetDevice(index));
    cudaPointerAttributes target{};
    CUDA_CHECK(cudaPointerGetAttributes(&target, to));
    require(target.type == cudaMemoryTypeDevice && target.device == index,
            "internal error: the target is not GPU ", index, "'s memory");
    const Lease lease(lanes_of(index));
    lease.lane->copy(static_cast<std::byte*>(to), static_cast<const std::byte*>(from), bytes);
}

}  // namespace hark::cuda
