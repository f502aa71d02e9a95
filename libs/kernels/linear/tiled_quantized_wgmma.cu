#include "kernels/linear/tiled_quantized_wgmma.cuh"

namespace hark::cuda {
namespace {

using namespace quantized_wgmma;

// A warp: multiplies its rows of w in all units of the block.
template <class Block, int Rows>
__device__ void multiply_units(Memory<Block, Rows>& shared, const Product& args, int warp) {
    constexpr int kInFlight = Rows < 128 ? 1 : 0;  // more registers would be needed
    using Shape = ChunkShape<Block>;
    const int chunks = args.division.chunks, g = threadIdx.x % 32 / 4;
    ChunkCopy<Block> copy(args, warp);
#pragma unroll
    for (int i = 0; i < kChunkStages; ++i) copy.start(args, warp, shared.weights[i][warp]);
    pdl_wait();
    Place<Memory<Block, Rows>::kStages> place;
    int stage = 0, before = -1;
#pragma unroll 1
    for (Units units(args.division); units.left > 0; units.next_tile(chunks)) {
        float sums[Rows / 2] = {};
        const int first_row = args.output(units.tile) + warp * kGroupRows + g;
        auto phase = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(args.w) +
                                           first_row * args.stride + units.chunk * Shape::kBytes);
        int columns = args.k - units.chunk * Shape::kColumns;
#pragma unroll 1
        for (int left = units.in_tile(chunks); left > 0; --left) {
            __pipeline_wait_prior(kChunkStages - 1);
            __syncwarp();
            const uint8_t* rows = shared.weights[stage][warp] + g * Shape::kPitch;
            const uint8_t* low = rows + phase % 32;
            const uint8_t* high =
                rows + 8 * Shape::kPitch + (phase + 8 * static_cast<uint32_t>(args.stride)) % 32;
            const HalfScales<Block> low_scales(low, columns), high_scales(high, columns);
#pragma unroll
            for (int at = 0; at < Shape::kColumns; at += kDepth) {
                uint32_t a[kDepthSteps][4];
                load_operands<Block>(a, low, high, low_scales, high_scales, at);
                wait(shared.full[place.at], place.parity);
                const uint64_t x = factor(shared.x[place.at]);
                fence_products();
#pragma unroll
                for (int step = 0; step < kDepthSteps; ++step)
                    multiply_along(__half{}, sums, a[step], moved(x, 32 * step));
                commit_products();
                wait_products<kInFlight>();
                if (kInFlight == 0) before = place.at;
                if (before >= 0 && threadIdx.x % 32 == 0) arrive(shared.empty[before]);
                if (kInFlight == 1) before = place.at;
                place.advance();
            }
            __syncwarp();
            copy.start(args, warp, shared.weights[stage][warp]);
            stage = (stage + 1) % kChunkStages;
            phase += Shape::kBytes;
            columns -= Shape::kColumns;
        }
        wait_products<0>();
        pin(sums);
        write_part<Rows>(args, units.tile, warp, sums);
    }
}

template <class Block, int Rows>
__global__ void __launch_bounds__(kThreads, 1)
    quantized_wgmma_kernel(const __grid_constant__ CUtensorMap x,
                           const __grid_constant__ Product args) {
#if HARK_HOPPER_CODE
    pdl_trigger();
    extern __shared__ uint8_t memory[];
    auto& shared = *reinterpret_cast<Memory<Block, Rows>*>(
        memory + (1024 - shared_address(memory) % 1024) % 1024);
    const int warp = __shfl_sync(0xffffffff, threadIdx.x / 32, 0);
    if (threadIdx.x == 0) {
        for (int i = 0; i < Memory<Block, Rows>::kStages; ++i) {
            init(shared.full[i], 1);
            init(shared.empty[i], kWarps);
        }
        fence_init();
    }
    __syncthreads();
    if (warp < kWarps) {
        take_registers<kRegisters>();
        multiply_units<Block, Rows>(shared, args, warp);
    } else {
        give_registers<kCopyRegisters>();
        pdl_wait();
        if (threadIdx.x == 32 * kWarps) copy_x<Block, Rows>(shared, args, x);
    }
#endif
}

// The chunks per block: as few as fill the GPU, but whole tiles if that is hardly more.
int chunks_per_block(const TileParts& division) {
    const auto least = static_cast<int>(ceil_div(division.units(), multiprocessors()));
    const auto whole = static_cast<int>(ceil_div(least, division.chunks)) * division.chunks;
    return whole * 16 <= least * 17 ? whole : least;
}

template <class Block, int Rows>
void launch_wgmma(Context& ctx, const SmallMArgs& args, const Tensor& x, const Tensor& w) {
    const auto kernel = quantized_wgmma_kernel<Block, Rows>;
    constexpr int kBytes = sizeof(Memory<Block, Rows>) + 1024;  // 1024: to align it
    CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes));
    TileParts division(args, kOutputs, Rows, ceil_div(args.k, ChunkShape<Block>::kColumns));
    division.per_block = chunks_per_block(division);
    const int64_t n = args.n + args.up;
    float* parts = ctx.arena.tensor(Dtype::f32, {division.most_parts(), args.rows, n}).as<float>();
    const auto k = static_cast<uint64_t>(args.k);
    const CUtensorMap map = tile_map(Dtype::f16, x.data, {k, static_cast<uint64_t>(args.rows)},
                                     {k * sizeof(__half)}, {kDepth, Rows});
    const Product passed = {division,
                            static_cast<int>(args.rows),
                            static_cast<int>(n),
                            static_cast<int>(args.k),
                            parts,
                            static_cast<const uint8_t*>(w.data),
                            args.k / Block::kValues * Block::kBytes};
    pdl_launch(ctx, kernel, static_cast<unsigned>(division.blocks()), kThreads, kBytes, map,
                 passed);
    add_parts(ctx, args, division, parts);
}

}  // namespace

bool has_quantized_wgmma() {
    return has_hopper_code(reinterpret_cast<const void*>(quantized_wgmma_kernel<BlockQ4K, 64>));
}

void tiled_quantized_wgmma(Context& ctx, Tensor y, Tensor x, const Matrix& w, const Epilogue& then,
                           const LinearFusion& with) {
    check_half("linear", x);
    const Arena::Scope scope(ctx.arena);
    const SmallMArgs args(y, x, w, then, with);
    with_block_type(w.values.dtype, [&](auto block) {
        using Block = decltype(block);
        if (args.rows <= 16) return launch_wgmma<Block, 16>(ctx, args, x, w.values);
        if (args.rows <= 32) return launch_wgmma<Block, 32>(ctx, args, x, w.values);
        if (args.rows <= 64) return launch_wgmma<Block, 64>(ctx, args, x, w.values);
        launch_wgmma<Block, 128>(ctx, args, x, w.values);
    });
}

}  // namespace hark::cuda
