// embedding's gradient on the GPU. Rows are sorted by token: the rows of one token are a run, in
// their order. Runs are summed in pieces at fixed places, so a frequent token costs no more than
// others, and the result does not depend on the order of blocks.
#include <bit>
#include <cub/device/device_radix_sort.cuh>

#include "kernels/cuda/cuda_common.cuh"
#include "kernels/elementwise/elementwise.cuh"

namespace hark::cuda {
namespace {

constexpr int kPiece = 32;  // rows per piece: a warp's lanes hold their places
constexpr int kGatherWarps = 8;  // per block that adds the parts of a run
constexpr int kGatherAhead = 8;

// The rows by key: sorted keys, and the row of each. A row without a place has the key `places`,
// after all others.
struct Sorted {
    const uint32_t* keys;
    const int32_t* rows;
    int64_t count;
    uint32_t places;
};

__global__ void keys_kernel(uint32_t* keys, int32_t* rows, const int32_t* ids, int64_t count,
                            uint32_t places) {
    const int64_t t = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (t >= count) return;
    keys[t] = min(static_cast<uint32_t>(ids[t]), places);  // a negative id becomes a large key
    rows[t] = static_cast<int32_t>(t);
}

// Sums a piece's rows, V columns per thread. The sum of a run within the piece is added to the
// table. That of a run that continues from the previous piece goes to parts[piece][0]; that of a
// run that only continues in the next piece goes to parts[piece][1].
template <class T, int V>
__global__ void pieces_kernel(float* table, float* parts, Sorted sorted, const T* __restrict__ dy,
                              int64_t columns) {
    const int64_t piece = blockIdx.x, first = piece * kPiece;
    const int count = static_cast<int>(min(sorted.count - first, int64_t{kPiece}));
    const int lane = threadIdx.x % 32;
    const int64_t c = (int64_t{blockIdx.y} * blockDim.x + threadIdx.x) * V;
    const uint32_t key = lane < count ? sorted.keys[first + lane] : sorted.places;
    const int32_t row = lane < count ? sorted.rows[first + lane] : 0;
    const bool from_front = first > 0 && sorted.keys[first - 1] == sorted.keys[first];
    const bool to_back = first + count < sorted.count &&
                         sorted.keys[first + count] == sorted.keys[first + count - 1];
    Pack<float, V> sum{};
    bool at_front = true;
    for (int i = 0; i < count; i += kGatherAhead) {
        Pack<T, V> values[kGatherAhead];
        for (int a = 0; a < kGatherAhead; ++a) {
            const int64_t from = __shfl_sync(0xffffffff, row, i + a);
            if (i + a < count && c < columns) values[a] = load_pack<V>(dy + from * columns + c);
        }
        for (int a = 0; a < kGatherAhead; ++a) {
            const uint32_t own = __shfl_sync(0xffffffff, key, i + a);
            const uint32_t next = __shfl_sync(0xffffffff, key, (i + a + 1) % 32);
            if (own >= sorted.places || i + a >= count || c >= columns) continue;
            for (int v = 0; v < V; ++v) sum.values[v] += to_f32(values[a].values[v]);
            const bool last = i + a + 1 == count;
            if (!last && next == own) continue;
            const bool continued = at_front && from_front;
            if (continued || (last && to_back)) {
                store_pack(parts + (2 * piece + !continued) * columns + c, sum);
            } else {
                Pack<float, V> total = load_pack<V>(table + own * columns + c);
                for (int v = 0; v < V; ++v) total.values[v] += sum.values[v];
                store_pack(table + own * columns + c, total);
            }
            sum = {};
            at_front = false;
        }
    }
}

// Number of pieces after this one in which its last run, of key `key`, continues.
__device__ int64_t pieces_after(const Sorted& sorted, int64_t piece, uint32_t key) {
    for (int64_t found = 0;; found += 32) {
        const int64_t at = (piece + 1 + found + threadIdx.x % 32) * kPiece;
        const unsigned same =
            __ballot_sync(0xffffffff, at < sorted.count && sorted.keys[at] == key);
        if (same != 0xffffffff) return found + __ffs(static_cast<int>(~same)) - 1;
    }
}

// Adds the parts of the run that begins in this piece and ends in another, 32 V columns per block;
// a warp takes every eighth part.
template <int V>
__global__ void __launch_bounds__(32 * kGatherWarps)
    runs_kernel(float* table, const float* __restrict__ parts, Sorted sorted, int64_t columns) {
    const int64_t piece = blockIdx.x, first = piece * kPiece, end = first + kPiece;
    if (end >= sorted.count) return;
    const uint32_t key = sorted.keys[end - 1];
    if (key >= sorted.places || sorted.keys[end] != key) return;
    if (first > 0 && sorted.keys[first - 1] == key) return;  // it begins in a previous piece
    const int64_t count = 1 + pieces_after(sorted, piece, key);
    __shared__ float sums[kGatherWarps][V][32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int64_t c = (int64_t{blockIdx.y} * 32 + lane) * V;
    float sum[V] = {};
    if (c < columns) {
#pragma unroll 4
        for (int64_t i = warp; i < count; i += kGatherWarps) {
            const Pack<float, V> part =
                load_pack<V>(parts + (2 * (piece + i) + (i == 0)) * columns + c);
            for (int v = 0; v < V; ++v) sum[v] += part.values[v];
        }
    }
    for (int v = 0; v < V; ++v) sums[warp][v][lane] = sum[v];
    __syncthreads();
    if (warp > 0 || c >= columns) return;
    Pack<float, V> total = load_pack<V>(table + key * columns + c);
    for (int v = 0; v < V; ++v) {
        float all = 0;
        for (int w = 0; w < kGatherWarps; ++w) all += sums[w][v][lane];
        total.values[v] += all;
    }
    store_pack(table + key * columns + c, total);
}

// The memory is the arena's, until its scope ends.
Sorted sort(Context& ctx, Tensor ids, int64_t places) {
    const int64_t count = ids.dim(0);
    const auto memory = [&] { return ctx.arena.tensor(Dtype::i32, {count}).data; };
    auto *keys = static_cast<uint32_t*>(memory()), *sorted = static_cast<uint32_t*>(memory());
    auto *rows = static_cast<int32_t*>(memory()), *moved = static_cast<int32_t*>(memory());
    const auto most = static_cast<uint32_t>(places);
    keys_kernel<<<static_cast<unsigned>(ceil_div(count, 256)), 256, 0, stream_of(ctx)>>>(
        keys, rows, ids.as<int32_t>(), count, most);
    CUDA_CHECK(cudaGetLastError());
    const auto with = [&](void* scratch, size_t& bytes) {
        CUDA_CHECK(cub::DeviceRadixSort::SortPairs(scratch, bytes, keys, sorted, rows, moved,
                                                   static_cast<int>(count), 0, std::bit_width(most),
                                                   stream_of(ctx)));
    };
    size_t bytes = 0;
    with(nullptr, bytes);
    with(ctx.arena.tensor(Dtype::u8, {static_cast<int64_t>(bytes)}).data, bytes);
    return {sorted, moved, count, most};
}

// table (places, C) += dy's rows at their ids
void add_at(Context& ctx, Tensor table, Tensor dy, Tensor ids) {
    if (table.dim(0) == 0) return;
    const int64_t columns = dy.dim(1), pieces = ceil_div(dy.dim(0), kPiece);
    const Arena::Scope scope(ctx.arena);
    const Sorted sorted = sort(ctx, ids, table.dim(0));
    float* parts = ctx.arena.tensor(Dtype::f32, {2 * pieces, columns}).as<float>();
    with_activation_type("embedding_backward", dy, [&](auto value) {
        using T = decltype(value);
        constexpr int kWide = 8;  // columns per thread, of either type
        const bool packs = in_packs(columns, {dy.data, table.data});
        const int64_t across = ceil_div(columns, packs ? kWide : 1);
        const int64_t threads = std::min<int64_t>(256, ceil_div(across, 32) * 32);
        const auto grid = [&](int64_t each) {
            return dim3(static_cast<unsigned>(pieces),
                        static_cast<unsigned>(ceil_div(across, each)));
        };
        const auto pieces_of = packs ? pieces_kernel<T, kWide> : pieces_kernel<T, 1>;
        pieces_of<<<grid(threads), static_cast<unsigned>(threads), 0, stream_of(ctx)>>>(
            table.as<float>(), parts, sorted, static_cast<const T*>(dy.data), columns);
        CUDA_CHECK(cudaGetLastError());
        const auto runs_of = packs ? runs_kernel<kWide> : runs_kernel<1>;
        runs_of<<<grid(32), 32 * kGatherWarps, 0, stream_of(ctx)>>>(table.as<float>(), parts,
                                                                    sorted, columns);
        CUDA_CHECK(cudaGetLastError());
    });
}

}  // namespace

void embedding_backward(Context& ctx, Tensor dtable, Tensor dpositions, Tensor dy, Tensor tokens,
                        Tensor position) {
    enter(ctx, {&dtable, &dpositions, &dy, &tokens, &position});
    if (dy.size() == 0) return;
    add_at(ctx, dtable, dy, tokens);
    if (dpositions) add_at(ctx, dpositions, dy, position);
}

}  // namespace hark::cuda
