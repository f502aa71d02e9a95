// The instructions that Hopper (sm_90a) adds: barriers in shared memory that count threads and
// bytes, the copy engine (TMA), products of a warpgroup of 4 warps from shared memory (wgmma),
// registers moved between warpgroups, barriers between parts of a block. Source: PTX ISA 8.0,
// chapters on mbarrier, cp.async.bulk.tensor, wgmma and setmaxnreg.
#pragma once

#include <cuda.h>

#include "kernels/cuda/cuda_common.cuh"

// 1 if device code may have these instructions. Kernel bodies depend on it, so that the library
// compiles for other architectures; has_hopper_code() tells whether a body is there.
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define HARK_HOPPER_CODE 1
#else
#define HARK_HOPPER_CODE 0
#endif

namespace hark::cuda {

// A tensor in global memory for the copy engine, which reads boxes into shared memory with the
// 128-byte swizzle (box[0] is 128 bytes). Sizes are innermost first; strides, in bytes, are those
// of all dimensions except the innermost. Outside the tensor a box has zeros. Throws Error if the
// driver refuses. cuTensorMapEncodeTiled.
CUtensorMap tile_map(Dtype dtype, const void* data, std::initializer_list<uint64_t> sizes,
                     std::initializer_list<uint64_t> strides, std::initializer_list<uint32_t> box);

// The same of pairs of bytes, whose boxes are stored as they are: box[0] is a multiple of 16 bytes.
CUtensorMap plain_map(const void* data, std::initializer_list<uint64_t> sizes,
                      std::initializer_list<uint64_t> strides, std::initializer_list<uint32_t> box);

// Whether the current GPU has compute capability 9.0.
bool is_hopper();

// Whether the current GPU runs the kernel's code for sm_90a: it has compute capability 9.0, and the
// library was built for sm_90a, not only as PTX.
bool has_hopper_code(const void* kernel);

// Number of multiprocessors of the current GPU.
int multiprocessors();

// Bytes of shared memory that a block of the current GPU can have.
int shared_limit();

namespace hopper {

__device__ inline uint32_t shared_address(const void* pointer) {
    return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

// --- mbarrier: a phase ends when `arrivals` threads and all expected bytes have arrived

// mbarrier.init
__device__ inline void init(uint64_t& barrier, uint32_t arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(&barrier)),
                 "r"(arrivals)
                 : "memory");
}

// fence.mbarrier_init: the copy engine sees the barriers that this thread has initialised.
__device__ inline void fence_init() {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

// mbarrier.arrive
__device__ inline void arrive(uint64_t& barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(&barrier))
                 : "memory");
}

// cp.async.mbarrier.arrive.noinc: arrives when the copies (cp.async) that this thread has started
// are done.
__device__ inline void arrive_when_copied(uint64_t& barrier) {
    asm volatile(
        "cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(shared_address(&barrier))
        : "memory");
}

// mbarrier.arrive.expect_tx: arrives, and the phase also waits for that many bytes.
__device__ inline void arrive_expecting(uint64_t& barrier, uint32_t bytes) {
    asm volatile(
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(&barrier)),
        "r"(bytes)
        : "memory");
}

// createpolicy.fractional: how long the L2 cache keeps the bytes of a copy.
__device__ inline uint64_t cache_policy(bool forget_first) {
    uint64_t policy;
    if (forget_first) {
        asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    } else {
        asm("createpolicy.fractional.L2::evict_normal.b64 %0, 1.0;" : "=l"(policy));
    }
    return policy;
}

// mbarrier.try_wait.parity, until the phase of that parity has ended.
__device__ inline void wait(uint64_t& barrier, uint32_t parity) {
    uint32_t done;
    do {
        asm volatile(
            "{\n.reg .pred p;\n"
            "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
            "selp.u32 %0, 1, 0, p;\n}"
            : "=r"(done)
            : "r"(shared_address(&barrier)), "r"(parity)
            : "memory");
    } while (!done);
}

// Position of a thread in a ring of N buffers, and the parity of the phase that it waits for. The
// thread that fills them waits for the other parity: in the first round all buffers are empty.
template <int N>
struct Place {
    int at = 0;
    uint32_t parity = 0;
    __device__ void advance() {
        if (++at == N) at = 0, parity ^= 1;
    }
    __device__ void advance(int steps) {
        at += steps;
        parity ^= at / N % 2;
        at %= N;
    }
};

// --- the copy engine

// prefetch.tensormap
__device__ inline void prefetch_map(const CUtensorMap& map) {
    asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

// cp.async.bulk.tensor.2d, one box from column x and row y; its bytes count on the barrier.
__device__ inline void copy_box(void* to, const CUtensorMap& map, uint64_t& barrier, int x, int y) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
        "[%0], [%1, {%3, %4}], [%2];" ::"r"(shared_address(to)),
        "l"(&map), "r"(shared_address(&barrier)), "r"(x), "r"(y)
        : "memory");
}

// cp.async.bulk.tensor.3d
__device__ inline void copy_box(void* to, const CUtensorMap& map, uint64_t& barrier, int x, int y,
                                int z) {
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
        "[%0], [%1, {%3, %4, %5}], [%2];" ::"r"(shared_address(to)),
        "l"(&map), "r"(shared_address(&barrier)), "r"(x), "r"(y), "r"(z)
        : "memory");
}

// cp.async.bulk: contiguous bytes, a multiple of 16, both addresses aligned to 16.
__device__ inline void copy_bytes(void* to, const void* from, uint32_t bytes, uint64_t& barrier) {
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
            "r"(shared_address(to)),
        "l"(from), "r"(bytes), "r"(shared_address(&barrier))
        : "memory");
}

// cp.async.bulk to global memory, in this thread's open group of writes.
__device__ inline void write_bytes(void* to, const void* from, uint32_t bytes) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to),
                 "r"(shared_address(from)), "r"(bytes)
                 : "memory");
}

// cp.reduce.async.bulk: the same, added to the floats at `to`.
__device__ inline void add_floats(float* to, const float* from, uint32_t bytes) {
    asm volatile(
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], %2;" ::"l"(to),
        "r"(shared_address(from)), "r"(bytes)
        : "memory");
}

// cp.async.bulk.commit_group, and its waits: until this thread's writes have read their sources;
// until they are done.
__device__ inline void commit_writes() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
__device__ inline void wait_until_read() {
    asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}
__device__ inline void wait_until_written() {
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

// cp.async.bulk.tensor.2d with multicast: to the same address in every block of the cluster whose
// bit is set; the bytes count on that block's own barrier.
__device__ inline void copy_box_to(uint16_t blocks, void* to, const CUtensorMap& map,
                                   uint64_t& barrier, int x, int y) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
        ".multicast::cluster [%0], [%1, {%3, %4}], [%2], %5;" ::"r"(shared_address(to)),
        "l"(&map), "r"(shared_address(&barrier)), "r"(x), "r"(y), "h"(blocks)
        : "memory");
}

// fence.proxy.async: the copy engine and the matrix units see this thread's plain stores to shared
// memory.
__device__ inline void fence_stores() {
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// fence.proxy.async for all memory: orders this thread's plain accesses and the copy engine's at
// the same addresses, in both directions.
__device__ inline void fence_copies() { asm volatile("fence.proxy.async;" ::: "memory"); }

// stmatrix: stores four 8 x 8 matrices of 16-bit values, each transposed; each lane gives the
// address of one stored row.
__device__ inline void store_transposed(uint32_t row, const uint32_t (&values)[4]) {
    asm volatile(
        "stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(row),
        "r"(values[0]), "r"(values[1]), "r"(values[2]), "r"(values[3])
        : "memory");
}

// --- the blocks of a cluster

__device__ inline int cluster_rank() {
    int rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

// The two halves of sync_cluster(), for work in between. The first half publishes no writes of the
// thread: it tells only that the block is running.
__device__ inline void arrive_in_cluster() {
    asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
}
__device__ inline void wait_for_cluster() {
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

// barrier.cluster, called by all threads of all its blocks, each warp as a whole. Barriers
// initialised before it (and fence_init) are then visible, and bytes sent to another block have
// arrived.
__device__ inline void sync_cluster() {
    asm volatile(
        "barrier.cluster.arrive.release.aligned;\n"
        "barrier.cluster.wait.acquire.aligned;" ::
            : "memory");
}

// mapa: the address in block `rank` of the cluster that corresponds to `pointer` in this block.
__device__ inline uint32_t address_in(int rank, const void* pointer) {
    uint32_t there;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
                 : "=r"(there)
                 : "r"(shared_address(pointer)), "r"(rank));
    return there;
}

// mbarrier.arrive on the barrier at the same address in block `rank` of the cluster. It publishes
// no writes of this thread: use it to tell that something has been read.
__device__ inline void arrive_at(int rank, uint64_t& barrier) {
    asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(address_in(rank, &barrier))
                 : "memory");
}

// st.shared::cluster: 16 bytes to an address of address_in(); visible after sync_cluster().
__device__ inline void send(uint32_t to, const float (&values)[4]) {
    asm volatile("st.shared::cluster.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(to), "f"(values[0]),
                 "f"(values[1]), "f"(values[2]), "f"(values[3])
                 : "memory");
}

// --- the parts of a block

// setmaxnreg.dec and setmaxnreg.inc, by all threads of a warpgroup.
template <int Registers>
__device__ inline void give_registers() {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(Registers));
}
template <int Registers>
__device__ inline void take_registers() {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(Registers));
}

// bar.sync and bar.arrive on barrier `id` (0 is __syncthreads'); `threads` counts both kinds.
__device__ inline void sync_part(int id, int threads) {
    asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
__device__ inline void arrive_part(int id, int threads) {
    asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

// --- wgmma: products of a warpgroup, 64 rows of a by N columns of b, 16 deep

// Descriptor of an operand in shared memory: rows of 128 bytes as the copy engine swizzles them, 8
// rows per KiB. For an operand stored along the depth (rows of a, columns of b) a step of 16 is 32
// bytes within the rows. For b stored across it (transposed) it is 16 rows of 64 columns each, and
// `next` is the distance in bytes to the next 64 columns.
__device__ inline uint64_t factor(const void* tile, uint32_t next = 16) {
    constexpr uint64_t kSwizzle128 = uint64_t{1} << 62, kEightRows = 1024;
    return (shared_address(tile) >> 4) | uint64_t{next >> 4} << 16 | kEightRows >> 4 << 32 |
           kSwizzle128;
}

// The operand that begins `bytes` bytes later.
__device__ inline uint64_t moved(uint64_t factor, uint32_t bytes) { return factor + (bytes >> 4); }

// wgmma.fence: the products after it see the registers written before it.
__device__ inline void fence_products() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
// wgmma.commit_group: the products so far are a group.
__device__ inline void commit_products() {
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
// wgmma.wait_group: all groups except the latest N are done.
template <int N>
__device__ inline void wait_products() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory");
}

// No instruction. Keeps the compiler from moving uses of the registers across this point: it does
// not know that products write them until they are waited for.
template <int N>
__device__ inline void pin(float (&registers)[N]) {
#pragma unroll
    for (int i = 0; i < N; ++i) asm volatile("" : "+f"(registers[i])::"memory");
}

#define HARK_4_FLOATS(c, i) "+f"(c[i]), "+f"(c[i + 1]), "+f"(c[i + 2]), "+f"(c[i + 3])
#define HARK_16_FLOATS(c, i) \
    HARK_4_FLOATS(c, i), HARK_4_FLOATS(c, i + 4), HARK_4_FLOATS(c, i + 8), HARK_4_FLOATS(c, i + 12)
#define HARK_FLOATS_8(c) HARK_4_FLOATS(c, 0), HARK_4_FLOATS(c, 4)
#define HARK_FLOATS_16(c) HARK_16_FLOATS(c, 0)
#define HARK_FLOATS_32(c) HARK_16_FLOATS(c, 0), HARK_16_FLOATS(c, 16)
#define HARK_FLOATS_64(c) HARK_FLOATS_32(c), HARK_16_FLOATS(c, 32), HARK_16_FLOATS(c, 48)
#define HARK_NAMES_8 "%0, %1, %2, %3, %4, %5, %6, %7"
#define HARK_NAMES_16 HARK_NAMES_8 ", %8, %9, %10, %11, %12, %13, %14, %15"
#define HARK_NAMES_32                                                              \
    HARK_NAMES_16                                                                  \
    ", %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30," \
    "%31"
#define HARK_NAMES_64                                                                        \
    HARK_NAMES_32                                                                            \
    ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48," \
    "%49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"

// wgmma.mma_async, both operands in shared memory along the depth: c = a b, or c += a b if `add`.
// COUNT registers hold the N = 2 * COUNT columns; A, B, ADD are the operands' numbers.
#define HARK_PRODUCT_FROM_SHARED(T, TYPE, N, COUNT, A, B, ADD)                               \
    __device__ inline void multiply(T, float(&c)[COUNT], uint64_t a, uint64_t b, bool add) { \
        asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #ADD                               \
                     ", 0;\n"                                                                \
                     "wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." #TYPE "." #TYPE       \
                     " {" HARK_NAMES_##COUNT "}, %" #A ", %" #B ", p, 1, 1, 0, 0;\n}"        \
                     : HARK_FLOATS_##COUNT(c)                                                \
                     : "l"(a), "l"(b), "r"(static_cast<int>(add)));                          \
    }
HARK_PRODUCT_FROM_SHARED(__half, f16, 64, 32, 32, 33, 34)
HARK_PRODUCT_FROM_SHARED(__half, f16, 128, 64, 64, 65, 66)
HARK_PRODUCT_FROM_SHARED(__nv_bfloat16, bf16, 64, 32, 32, 33, 34)
HARK_PRODUCT_FROM_SHARED(__nv_bfloat16, bf16, 128, 64, 64, 65, 66)

// The same of e4m3, 32 deep: 32 bytes as well.
__device__ inline void multiply(fp8_t, float (&c)[64], uint64_t a, uint64_t b, bool add) {
    asm volatile(
        "{\n.reg .pred p;\nsetp.ne.b32 p, %66, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n128k32.f32.e4m3.e4m3 {" HARK_NAMES_64
        "}, %64, %65, p, 1, 1;\n}"
        : HARK_FLOATS_64(c)
        : "l"(a), "l"(b), "r"(static_cast<int>(add)));
}

// The same with b stored across the depth (transposed).
__device__ inline void multiply_across(__nv_bfloat16, float (&c)[32], uint64_t a, uint64_t b,
                                       bool add) {
    asm volatile(
        "{\n.reg .pred p;\nsetp.ne.b32 p, %34, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {" HARK_NAMES_32
        "}, %32, %33, p, 1, 1, 0, 1;\n}"
        : HARK_FLOATS_32(c)
        : "l"(a), "l"(b), "r"(static_cast<int>(add)));
}

// wgmma.mma_async, a in registers (each warp's 16 rows as in mma.m16n8k16), b in shared memory
// along the depth (multiply_along) or stored across it (multiply): c += a b.
#define HARK_PRODUCT_FROM_REGISTERS(NAME, ACROSS, T, TYPE, N, COUNT, A0, A1, A2, A3, B)          \
    __device__ inline void NAME(T, float(&c)[COUNT], const uint32_t(&a)[4], uint64_t b) {        \
        asm volatile("wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." #TYPE "." #TYPE           \
                     " {" HARK_NAMES_##COUNT "}, {%" #A0 ", %" #A1 ", %" #A2 ", %" #A3 "}, %" #B \
                                             ", 1, 1, 1, " #ACROSS ";"                           \
                     : HARK_FLOATS_##COUNT(c)                                                    \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));                      \
    }
HARK_PRODUCT_FROM_REGISTERS(multiply, 1, __half, f16, 64, 32, 32, 33, 34, 35, 36)
HARK_PRODUCT_FROM_REGISTERS(multiply, 1, __nv_bfloat16, bf16, 64, 32, 32, 33, 34, 35, 36)
HARK_PRODUCT_FROM_REGISTERS(multiply, 1, __half, f16, 128, 64, 64, 65, 66, 67, 68)
HARK_PRODUCT_FROM_REGISTERS(multiply, 1, __nv_bfloat16, bf16, 128, 64, 64, 65, 66, 67, 68)
HARK_PRODUCT_FROM_REGISTERS(multiply_along, 0, __half, f16, 16, 8, 8, 9, 10, 11, 12)
HARK_PRODUCT_FROM_REGISTERS(multiply_along, 0, __half, f16, 32, 16, 16, 17, 18, 19, 20)
HARK_PRODUCT_FROM_REGISTERS(multiply_along, 0, __half, f16, 64, 32, 32, 33, 34, 35, 36)
HARK_PRODUCT_FROM_REGISTERS(multiply_along, 0, __half, f16, 128, 64, 64, 65, 66, 67, 68)

}  // namespace hopper
}  // namespace hark::cuda
