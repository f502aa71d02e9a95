// append_cache and copy_cache on the GPU.
#include "kernels/batch_layout.h"
#include "kernels/kv_cache/cache_rows.cuh"
#include "kernels/elementwise/rows.cuh"

namespace hark::cuda {
namespace {

constexpr int kCacheThreads = 256;
constexpr int kWordsOfThread = 4;

struct Appended {
    void *keys, *values;
    const int *query_start, *slot, *length;
    int64_t width, first, slots, capacity;  // width: columns of x
    int heads, d, blocks;                   // blocks: of the table, per sequence
};

// Block (rows, b, 0 for keys and 1 for values). A place outside the cache is not written.
template <int V, class From, class To>
__global__ void append_kernel(Appended args, const From* x) {
    pdl_trigger();
    const int b = blockIdx.y, start = args.query_start[b], n = args.query_start[b + 1] - start;
    const int64_t j = row_of_thread();
    const int64_t p = args.length[b] - n + j, place = p % args.capacity;
    const int64_t slot = slot_of(args, b, p);
    pdl_wait();
    if (j >= n || slot < 0) return;
    const bool is_value = blockIdx.z == 1;
    const From* from =
        x + (start + j) * args.width + args.first + (is_value ? args.heads * args.d : 0);
    To* to = static_cast<To*>(is_value ? args.values : args.keys) +
             (slot * args.heads * args.capacity + place) * args.d;
    for (int c = threadIdx.x * V; c < args.heads * args.d; c += blockDim.x * V) {
        const int h = c / args.d;
        store_pack(to + h * args.capacity * args.d + (c - h * args.d),
                   convert_pack<To>(load_pack<V>(from + c)));
    }
}

// Copies move whole words, whatever the type: 16 bytes if heads begin and end at multiples of 16.
struct Copy {
    const int *from, *to;
    int64_t slots, heads, kept, head;  // words of a head that are copied; words per head

    __device__ bool is_slot(int64_t slot) const { return 0 <= slot && slot < slots; }
};

// Block (copy i and head, part of the words).
template <class Word>
__global__ void __launch_bounds__(kCacheThreads)
    gather_kernel(Copy args, Word* __restrict__ old, const Word* __restrict__ cache) {
    const int64_t i = blockIdx.x / args.heads, h = blockIdx.x % args.heads;
    const int64_t source = args.from[i];
    if (source == args.to[i] || !args.is_slot(source)) return;
    const Word* from = cache + (source * args.heads + h) * args.head;
#pragma unroll kWordsOfThread
    for (int64_t k = int64_t{blockIdx.y} * kCacheThreads + threadIdx.x; k < args.kept;
         k += int64_t{gridDim.y} * kCacheThreads)
        old[blockIdx.x * args.kept + k] = from[k];
}

// A slot copied from an out-of-range slot gets `nan`, all bits set: NaN in every type.
template <class Word>
__global__ void __launch_bounds__(kCacheThreads)
    scatter_kernel(Copy args, Word* __restrict__ cache, const Word* __restrict__ old, Word nan) {
    const int64_t i = blockIdx.x / args.heads, h = blockIdx.x % args.heads;
    const int64_t target = args.to[i];
    if (target == args.from[i] || !args.is_slot(target)) return;
    const bool known = args.is_slot(args.from[i]);
    Word* to = cache + (target * args.heads + h) * args.head;
#pragma unroll kWordsOfThread
    for (int64_t k = int64_t{blockIdx.y} * kCacheThreads + threadIdx.x; k < args.kept;
         k += int64_t{gridDim.y} * kCacheThreads)
        to[k] = known ? old[blockIdx.x * args.kept + k] : nan;
}

template <class Word>
void copy_words(Context& ctx, Tensor cache, Copy args, int64_t copies, Word nan) {
    const Arena::Scope scope(ctx.arena);
    const auto size = static_cast<int64_t>(size_of(cache.dtype)), word = int64_t{sizeof(Word)};
    args.kept = args.kept * size / word;
    args.head = args.head * size / word;
    const int64_t pieces = copies * args.heads;
    auto* old = static_cast<Word*>(ctx.arena.tensor(Dtype::u8, {pieces, args.kept, word}).data);
    const int64_t parts =
        std::clamp(ceil_div(args.kept, kCacheThreads * kWordsOfThread), int64_t{1}, kMostGridY);
    const dim3 grid(static_cast<unsigned>(pieces), static_cast<unsigned>(parts));
    auto* words = static_cast<Word*>(cache.data);
    gather_kernel<<<grid, kCacheThreads, 0, stream_of(ctx)>>>(args, old, words);
    CUDA_CHECK(cudaGetLastError());
    scatter_kernel<<<grid, kCacheThreads, 0, stream_of(ctx)>>>(args, words, old, nan);
    CUDA_CHECK(cudaGetLastError());
}

}  // namespace

void append_cache(Context& ctx, Tensor keys, Tensor values, Tensor x, int64_t first,
                  const BatchLayout& rows) {
    if (rows.few > 0) {
        for (const BatchLayout& part : parts_of(rows))
            cuda::append_cache(ctx, keys, values, x, first, part);
        return;
    }
    const int64_t heads = keys.dim(1), d = keys.dim(3), width = x.dim(-1);
    enter(ctx, {&keys, &values, &x, &rows.query_start, &rows.block_table, &rows.length});
    if (rows.sequences() == 0 || rows.max_queries <= 0 || heads * d == 0) return;
    if (keys.dtype == Dtype::q8_0)
        return append_q8_0(ctx, keys, values, {x, first}, {x, first + heads * d}, rows);
    const bool packs =
        in_packs(d, {keys.data, values.data, x.data}) && first % kPack == 0 && width % kPack == 0;
    RowGrid grid(rows.max_queries, heads * d / (packs ? kPack : 1));
    grid.blocks.y = static_cast<unsigned>(rows.sequences());
    grid.blocks.z = 2;
    const Appended args{keys.data,
                        values.data,
                        rows.query_start.as<int32_t>(),
                        rows.block_table.as<int32_t>(),
                        rows.length.as<int32_t>(),
                        width,
                        first,
                        keys.dim(0),
                        keys.dim(2),
                        static_cast<int>(heads),
                        static_cast<int>(d),
                        static_cast<int>(rows.blocks())};
    with_float_type(keys.dtype, [&](auto to_value) {
        with_float_type(x.dtype, [&](auto from_value) {
            using To = decltype(to_value);
            using From = decltype(from_value);
            const auto kernel = packs ? append_kernel<kPack, From, To> : append_kernel<1, From, To>;
            pdl_launch(ctx, kernel, grid.blocks, grid.threads, 0, args,
                       static_cast<const From*>(x.data));
        });
    });
}

void copy_cache(Context& ctx, Tensor cache, Tensor from, Tensor to, int64_t length) {
    const int64_t copies = from.dim(0), heads = cache.dim(1), d = cache.dim(3);
    enter(ctx, {&cache, &from, &to});
    if (copies * heads * length * d == 0) return;
    const Copy args{from.as<int32_t>(), to.as<int32_t>(), cache.dim(0), heads,
                    length * d,         cache.dim(2) * d};
    if (in_packs(length * d, {cache.data}) && args.head % kPack == 0) {
        copy_words(ctx, cache, args, copies, uint4{~0u, ~0u, ~0u, ~0u});
    } else if (cache.dtype == Dtype::f32) {
        copy_words(ctx, cache, args, copies, ~uint32_t{0});
    } else {
        copy_words(ctx, cache, args, copies, static_cast<uint16_t>(~0));
    }
}

}  // namespace hark::cuda
