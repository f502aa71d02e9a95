// The second kernel of absorbed_attention: softmax(q' X^T) X for a range of keys; q' is one row's
// absorbed queries.
//
// Keys arrive in shared memory in stages of 16 (asynchronous copies) and are used in tiles of 32. A
// tile is read twice: scores = X (keys x columns) q'^T (columns x heads), then sums += X^T (columns
// x keys) powers (keys x heads). A warp has an eighth of the columns; its part of q' and its sums
// stay in registers. The warps' parts of a score are added in pairs. The softmax is updated with
// each tile, as in FlashAttention. A block computes several items in turn; the copies run ahead
// across items.
#include "kernels/absorbed_attention/absorbed_attention_run.cuh"

namespace hark::cuda {
namespace {

// The computing threads. `arrived` and `read` are the barriers of the stages on Hopper.
template <class T, int Steps, int HeadTiles, int TileKeys>
__device__ __forceinline__ void compute(const AbsorbedArgs& args, unsigned char* shared,
                                        const Layout& at, int stages, int groups, int items) {
    using R = Run<T, Steps, HeadTiles, TileKeys>;
    const int warp = threadIdx.x / 32;
#if HARK_HOPPER_CODE
    uint64_t* arrived = reinterpret_cast<uint64_t*>(shared + at.arrived);
    uint64_t* read = reinterpret_cast<uint64_t*>(shared + at.read);
    uint32_t parities = 0;
#else
    Copies<T, HeadTiles, TileKeys> copies(args, shared, at.pitch, groups, items);
    for (int i = 0; i < stages; ++i) copies.next(i);
#endif
    R run;
    run.steps = Steps == 10 ? 10 : args.c / 128;
    run.pitch = at.pitch;
    run.scores = reinterpret_cast<float*>(shared + at.scores);
    run.powers = reinterpret_cast<T*>(shared + at.powers);
    run.kept = reinterpret_cast<float*>(shared + at.kept);
    const int own = warp * run.steps * 32;  // the warp's columns, in bytes
    int place = 0;                          // first stage of the ring
    for (int index = blockIdx.x; index < items; index += gridDim.x) {
        const Item item(args, index, groups, HeadTiles);
        const Keys<T> keys(args, item);
        run.heads = min(args.heads - item.first_tile * 8, HeadTiles * 8);
        if (keys.count == 0) {
            if (threadIdx.x < run.heads)
                args.row_max_sum[(int64_t{item.row} * args.heads + item.first_tile * 8 +
                                  threadIdx.x) *
                                     args.splits +
                                 item.split] = {keys.valid ? -INFINITY : NAN,
                                                keys.valid ? 0.0f : NAN};
            continue;
        }
        run.begin(args, item);
        for (int first = 0; first < keys.count; first += TileKeys) {
            const unsigned char* stage[R::kTileStages];
            int places[R::kTileStages];
#pragma unroll
            for (int i = 0; i < R::kTileStages; ++i) {
                places[i] = place;
                stage[i] = shared + place * kStage * at.pitch + own;
                place = place + 1 < stages ? place + 1 : 0;
            }
#if HARK_HOPPER_CODE
            for (const int i : places) {
                hopper::wait(arrived[i], parities >> i & 1);
                parities ^= 1u << i;
            }
#else
            if (stages - R::kTileStages == 3) {  // waits for all but the 3 newest stages
                __pipeline_wait_prior(3);
            } else {
                __pipeline_wait_prior(1);
            }
            synchronise();
#endif
            run.score(stage);
            synchronise();
            run.soften(keys.count - first);
            synchronise();
            run.add(stage);
#if HARK_HOPPER_CODE
            __syncwarp();
            for (const int i : places)
                if (threadIdx.x % 32 == 0) hopper::arrive(read[i]);
#else
            synchronise();
            for (const int i : places) copies.next(i);
#endif
        }
        run.end(args, item);
    }
}

// Block i computes the items i, i + blocks, ...; item = (row * groups + tiles of heads) * splits +
// split.
template <class T, int Steps, int HeadTiles, int TileKeys>
__global__ void __launch_bounds__(kThreads, 1)
    attend_kernel(AbsorbedArgs args, int stages, int groups, int items, bool ask, bool evict) {
    pdl_trigger();
    extern __shared__ __align__(16) unsigned char shared[];
    const Layout at(args.c, min(args.heads, HeadTiles * 8), HeadTiles, TileKeys, stages);
    // Heads that only fill up a tile have weight zero and are never rescaled.
    T* powers = reinterpret_cast<T*>(shared + at.powers);
    for (int i = threadIdx.x; i < HeadTiles * 8 * (TileKeys + 8); i += kThreads)
        powers[i] = from_f32<T>(0);
    if (threadIdx.x < HeadTiles * 8) reinterpret_cast<float*>(shared + at.kept)[threadIdx.x] = 1;
    if (ask) {  // for all of the block's keys
        const Keys<T> keys(args, Item(args, blockIdx.x, groups, HeadTiles));
        for (int i = threadIdx.x * 64; i < keys.count * args.c; i += kThreads * 64)
            prefetch(keys.first + i);
    }
#if HARK_HOPPER_CODE
    uint64_t* arrived = reinterpret_cast<uint64_t*>(shared + at.arrived);
    uint64_t* read = reinterpret_cast<uint64_t*>(shared + at.read);
    if (threadIdx.x == 0) {
        for (int i = 0; i < stages; ++i) {
            hopper::init(arrived[i], 1);
            hopper::init(read[i], kAbsorbedWarps);
        }
        hopper::fence_init();
    }
    __syncthreads();
    const bool copies = threadIdx.x >= kComputing, early = copies && args.kv_ready;
    if (!early) pdl_wait();
    if (copies) {
        hopper::give_registers<40>();
        if (threadIdx.x < kComputing + 32)
            Copies<T, HeadTiles, TileKeys>(args, shared, at.pitch, groups, items)
                .run(arrived, read, stages, evict);
        if (early) pdl_wait();
    } else {
        hopper::take_registers<232>();
        compute<T, Steps, HeadTiles, TileKeys>(args, shared, at, stages, groups, items);
    }
#else
    __syncthreads();
    pdl_wait();
    compute<T, Steps, HeadTiles, TileKeys>(args, shared, at, stages, groups, items);
#endif
}

template <class T, int Steps, int HeadTiles, int TileKeys>
void launch(Context& ctx, const AbsorbedArgs& args, int stages) {
    const int groups = static_cast<int>(ceil_div(args.head_tiles(), HeadTiles));
    const int items = args.rows * args.splits * groups;
    const Layout layout(args.c, std::min(args.heads, HeadTiles * 8), HeadTiles, TileKeys, stages);
    const auto kernel = attend_kernel<T, Steps, HeadTiles, TileKeys>;
    // Keys are prefetched only if the L2 cache can hold them; otherwise they would be read twice.
    const bool ask = key_bytes(args) <= kMostAsked && items <= multiprocessors();
    const auto* code = reinterpret_cast<const void*>(kernel);
    const int threads = kComputing + (has_hopper_code(code) ? kCopying : 0);
    CUDA_CHECK(
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, layout.bytes));
    const int blocks = std::min(items, multiprocessors());
    pdl_launch(ctx, kernel, static_cast<unsigned>(blocks), threads, layout.bytes, args, stages,
               groups, items, ask, evicts_keys(args));
}

// Few rows are spread over more blocks, each with 8 of the heads. Tiles of 32 keys in 5 stages if
// shared memory holds them (compute capability 9.0), or in 3 (8.0); else tiles of 16 in 2.
template <class T, int Steps, int HeadTiles>
void launch(Context& ctx, const AbsorbedArgs& args) {
    const int limit = shared_limit();
    const auto fits = [&](int keys, int stages) {
        return Layout(args.c, args.heads, HeadTiles, keys, stages).bytes <= limit;
    };
    const int stages = fits(32, 5) ? 5 : 3;
    if (!fits(32, stages)) return launch<T, Steps, HeadTiles, 16>(ctx, args, 2);
    const bool few = args.rows * args.splits * args.head_tiles() <= multiprocessors();
    if (few) return launch<T, Steps, 1, 32>(ctx, args, stages);
    launch<T, Steps, HeadTiles, 32>(ctx, args, stages);
}

template <class T>
void launch(Context& ctx, const AbsorbedArgs& args) {
    if (args.c <= 512) return launch<T, 4, 1>(ctx, args);
    if (args.c <= 1024) return launch<T, 8, 2>(ctx, args);
    launch<T, 10, 3>(ctx, args);
}

}  // namespace

void attend_absorbed(Context& ctx, const AbsorbedArgs& args) {
    if (attend_narrow(ctx, args)) return;
    if (args.type == Dtype::f16) {
        launch<__half>(ctx, args);
    } else {
        launch<__nv_bfloat16>(ctx, args);
    }
}

}  // namespace hark::cuda
