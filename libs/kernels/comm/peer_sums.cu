// Sums of the ranks' values by kernels that access the other GPUs' memory.
#include <algorithm>
#include <cstring>

#include "kernels/comm/peer_memory.cuh"
#include "kernels/runtime/plugin.h"

namespace hark::cuda {
namespace {

// Bytes that one call writes to all other ranks, in values, if it writes lines. A line costs twice
// the bytes, but no waits for the links to say that all is there.
constexpr int64_t kMostInLines = int64_t{1} << 20;
// Bytes of x per kernel that sums parts.
constexpr int64_t kMostInParts = int64_t{8} << 20;

int64_t most_in_lines(int size) { return kMostInLines / (size - 1) / 8 * 8; }

PeerLayout layout_of(int size) {
    return {size, most_in_lines(size) * 2, ceil_div(kMostInParts / 16, size) * 16};
}

struct PeerSum {
    Peers peers;
    PeerLayout layout;
    void* x;
    int64_t n;

    // Number of this call.
    __device__ uint32_t call() const {
        // After 2^32 - 1 comes 2: 0 is what unwritten memory has, and places take turns.
        const uint32_t before = *counter();
        return before == UINT32_MAX ? 2 : before + 1;
    }
    // Called by all threads of a block at the end.
    __device__ void end(uint32_t call) const {
        __syncthreads();  // all have read the number
        if (threadIdx.x == 0) *counter() = call;
    }
    __device__ uint32_t* counter() const {
        return reinterpret_cast<uint32_t*>(own(PeerLayout::counter(blockIdx.x)));
    }
    __device__ std::byte* own(int64_t at) const { return peers.memory[peers.rank] + at; }
    // Of rank `from` in the memory of rank `of`.
    __device__ std::byte* lines(int of, uint32_t call, int from) const {
        return peers.memory[of] + layout.lines_at + place(call, from) * layout.line_bytes;
    }
    __device__ std::byte* part(int of, uint32_t call, int from) const {
        return peers.memory[of] + layout.parts_at + place(call, from) * layout.part_bytes;
    }
    __device__ std::byte* sums(int of, uint32_t call, int from) const {
        return peers.memory[of] + layout.sums_at + place(call, from) * layout.part_bytes;
    }
    // Calls f with each other rank, the next one first: the ranks write to different ones.
    template <class F>
    __device__ void each_other(const F& f) const {
        for (int k = 1; k < peers.size; ++k) f((peers.rank + k) % peers.size);
    }
    // Waits until this block of all ranks has ended the phase of the call.
    __device__ void barrier(int phase, uint32_t call) const {
        __syncthreads();
        const int other = threadIdx.x, block = blockIdx.x;
        if (other < peers.size && other != peers.rank) {
            store_flag(peers.memory[other] + PeerLayout::flag(phase, block, peers.rank), call);
            wait_flag(own(PeerLayout::flag(phase, block, other)), call, peers.stop);
        }
        __syncthreads();
    }

  private:
    __device__ int64_t place(uint32_t call, int from) const {
        return int64_t{call & 1} * peers.size + from;
    }
};

// Values of one type as bytes of another.
template <class To, class From>
__device__ To bits_of(const From& from) {
    static_assert(sizeof(To) == sizeof(From));
    To to;
    memcpy(&to, &from, sizeof to);
    return to;
}

// Pack i of x (n); values after the end are 0.
template <int V, class T>
__device__ Pack<T, V> load_within(const T* x, int64_t i, int64_t n) {
    if ((i + 1) * V <= n) return load_pack<V>(x + i * V);
    Pack<T, V> pack;
    for (int v = 0; v < V; ++v) pack.values[v] = i * V + v < n ? x[i * V + v] : from_f32<T>(0);
    return pack;
}

template <class T, int V>
__device__ void store_within(T* x, int64_t i, int64_t n, const Pack<T, V>& pack) {
    if ((i + 1) * V <= n)
        *reinterpret_cast<Pack<T, V>*>(x + i * V) = pack;
    else
        for (int v = 0; v < V; ++v)
            if (i * V + v < n) x[i * V + v] = pack.values[v];
}

// The sum of each rank's pack, in the order of the ranks.
template <class T, int V, class Of>
__device__ Pack<T, V> sum_packs(int size, const Of& pack_of) {
    float sums[V];
    for (int rank = 0; rank < size; ++rank) {
        const Pack<T, V> pack = pack_of(rank);
        for (int v = 0; v < V; ++v)
            sums[v] = rank == 0 ? to_f32(pack.values[v]) : sums[v] + to_f32(pack.values[v]);
    }
    Pack<T, V> rounded;
    for (int v = 0; v < V; ++v) rounded.values[v] = from_f32<T>(sums[v]);
    return rounded;
}

constexpr int64_t kStep = int64_t{kPeerBlocks} * kPeerThreads;
__device__ int64_t first_of_thread() { return int64_t{blockIdx.x} * kPeerThreads + threadIdx.x; }

// Every rank writes its x to all others, in lines, and adds what has come from each.
template <class T>
__global__ void __launch_bounds__(kPeerThreads)
    sum_lines_kernel(const __grid_constant__ PeerSum sum) {
    constexpr int V = 8 / sizeof(T);
    pdl_trigger();
    pdl_wait();
    const Peers& peers = sum.peers;
    const uint32_t call = sum.call();
    T* x = static_cast<T*>(sum.x);
    const int64_t n = sum.n, packs = (n + V - 1) / V;
    for (int64_t i = first_of_thread(); i < packs; i += kStep) {
        const Pack<T, V> pack = load_within<V>(x, i, n);
        sum.each_other([&](int other) {
            store_line(sum.lines(other, call, peers.rank) + 16 * i, bits_of<uint2>(pack), call);
        });
    }
    for (int64_t i = first_of_thread(); i < packs; i += kStep) {
        const auto of = [&](int rank) {
            if (rank == peers.rank) return load_within<V>(x, i, n);
            const uint2 values =
                wait_line(sum.lines(peers.rank, call, rank) + 16 * i, call, peers.stop);
            return bits_of<Pack<T, V>>(values);
        };
        store_within(x, i, n, sum_packs<T, V>(peers.size, of));
    }
    sum.end(call);
}

// store(i, load(i)) for all packs, with several loads of a thread in flight.
template <class Load, class Store>
__device__ void move_packs(int64_t packs, const Load& load, const Store& store) {
    constexpr int kAtOnce = 4;
    for (int64_t first = first_of_thread(); first < packs; first += kAtOnce * kStep) {
        decltype(load(first)) values[kAtOnce];
#pragma unroll
        for (int k = 0; k < kAtOnce; ++k)
            if (first + k * kStep < packs) values[k] = load(first + k * kStep);
#pragma unroll
        for (int k = 0; k < kAtOnce; ++k)
            if (first + k * kStep < packs) store(first + k * kStep, values[k]);
    }
}

// Each rank sums a part of x, which the others write to it, and writes the sums to all others.
template <class T>
__global__ void __launch_bounds__(kPeerThreads)
    sum_parts_kernel(const __grid_constant__ PeerSum sum, int64_t part_packs) {
    constexpr int V = 16 / sizeof(T);
    using Values = Pack<T, V>;
    pdl_trigger();
    pdl_wait();
    const Peers& peers = sum.peers;
    const uint32_t call = sum.call();
    T* x = static_cast<T*>(sum.x);
    const int64_t n = sum.n, packs = (n + V - 1) / V;
    const auto first_of = [&](int rank) { return rank * part_packs; };
    const auto packs_of = [&](int rank) {
        const int64_t rest = packs - first_of(rank);
        return rest < part_packs ? rest : part_packs;  // below 0: none
    };
    const auto from_x = [&](int rank) {
        return [=](int64_t i) { return load_within<V>(x, first_of(rank) + i, n); };
    };
    const auto to_x = [&](int rank, int64_t i, const Values& values) {
        store_within(x, first_of(rank) + i, n, values);
    };
    const auto at = [](std::byte* memory, int64_t i) {
        return reinterpret_cast<uint4*>(memory) + i;
    };
    const auto load_written = [&](std::byte* memory, int64_t i) {
        return bits_of<Values>(__ldcg(at(memory, i)));
    };
    const auto write = [&](std::byte* memory, int64_t i, const Values& values) {
        *at(memory, i) = bits_of<uint4>(values);
    };

    sum.each_other([&](int other) {
        std::byte* to = sum.part(other, call, peers.rank);
        move_packs(packs_of(other), from_x(other),
                   [&](int64_t i, const Values& values) { write(to, i, values); });
    });
    sum.barrier(0, call);
    const auto summed = [&](int64_t i) {
        return sum_packs<T, V>(peers.size, [&](int rank) {
            return rank == peers.rank ? from_x(rank)(i)
                                      : load_written(sum.part(peers.rank, call, rank), i);
        });
    };
    move_packs(packs_of(peers.rank), summed, [&](int64_t i, const Values& values) {
        to_x(peers.rank, i, values);
        sum.each_other([&](int other) { write(sum.sums(other, call, peers.rank), i, values); });
    });
    sum.barrier(1, call);
    sum.each_other([&](int other) {
        std::byte* from = sum.sums(peers.rank, call, other);
        move_packs(
            packs_of(other), [&](int64_t i) { return load_written(from, i); },
            [&](int64_t i, const Values& values) { to_x(other, i, values); });
    });
    sum.end(call);
}

template <class T>
void launch_sum(Context& ctx, const PeerSum& sum) {
    const auto bytes = sum.n * static_cast<int64_t>(sizeof(T));
    if (bytes <= most_in_lines(sum.peers.size))
        return pdl_launch(ctx, sum_lines_kernel<T>, kPeerBlocks, kPeerThreads, 0, sum);
    pdl_launch(ctx, sum_parts_kernel<T>, kPeerBlocks, kPeerThreads, 0, sum,
               ceil_div(ceil_div(bytes, 16), sum.peers.size));
}

void all_reduce(Context& ctx, const Peers& peers, const Tensor& x) {
    enter(ctx, {&x});
    const auto size = static_cast<int64_t>(size_of(x.dtype));
    require(reinterpret_cast<uintptr_t>(x.data) % 16 == 0, "all_reduce: ", x, " is not aligned");
    for (int64_t from = 0, most = kMostInParts / size; from < x.size(); from += most) {
        const PeerSum sum{peers, layout_of(peers.size),
                          static_cast<std::byte*>(x.data) + from * size,
                          std::min(most, x.size() - from)};
        with_float_type(x.dtype, [&](auto value) { launch_sum<decltype(value)>(ctx, sum); });
    }
}

std::shared_ptr<void> make_memory(const Context& ctx, int size) {
    const MemorySource& source = ctx.arena.source();
    const auto bytes = static_cast<size_t>(layout_of(size).end);
    std::shared_ptr<void> memory(source.allocate(bytes), source.release);
    CUDA_CHECK(cudaMemset(memory.get(), 0, bytes));
    CUDA_CHECK(cudaDeviceSynchronize());
    return memory;
}

void find(const Context& ctx, void* memory, PeerAddress& address) {
    enter(ctx, {});
    cudaIpcMemHandle_t handle{};
    static_assert(sizeof handle == sizeof address.memory);
    CUDA_CHECK(cudaDeviceGetPCIBusId(address.gpu.data(), static_cast<int>(address.gpu.size()),
                                     ctx.device_index));
    // Without handles (some virtual GPUs) the ranks use NCCL.
    if (cudaIpcGetMemHandle(&handle, memory) == cudaSuccess)
        std::memcpy(address.memory.data(), &handle, sizeof handle);
    cudaGetLastError();  // else the next launch would find it
}

std::shared_ptr<void> open(const Context& ctx, const PeerAddress& address) {
    enter(ctx, {});
    cudaIpcMemHandle_t handle;
    std::memcpy(&handle, address.memory.data(), sizeof handle);
    int gpu = 0, can = 0;
    void* memory = nullptr;
    const bool opened =
        address.memory != PeerAddress{}.memory &&
        cudaDeviceGetByPCIBusId(&gpu, address.gpu.data()) == cudaSuccess &&
        cudaDeviceCanAccessPeer(&can, ctx.device_index, gpu) == cudaSuccess && can != 0 &&
        cudaIpcOpenMemHandle(&memory, handle, cudaIpcMemLazyEnablePeerAccess) == cudaSuccess;
    cudaGetLastError();  // else the next launch would find it
    if (!opened) return nullptr;
    return {memory, [](void* old) { cudaIpcCloseMemHandle(old); }};
}

}  // namespace
}  // namespace hark::cuda

HARK_EXPORT const hark::CudaPeers* hark_cuda_peers() {
    namespace cuda = hark::cuda;
    static const hark::CudaPeers peers = {.make_memory = cuda::make_memory,
                                          .find = cuda::find,
                                          .open = cuda::open,
                                          .all_reduce = cuda::all_reduce};
    return &peers;
}
