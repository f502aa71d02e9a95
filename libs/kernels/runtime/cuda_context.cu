// The context on a GPU, and libhark-cuda.so's table of functions other than operations.
#include <cstring>

#include "kernels/cuda/cuda_common.cuh"
#include "kernels/cuda_abi.h"
#include "kernels/runtime/cuda_library.h"
#include "kernels/runtime/first_product.cuh"
#include "kernels/runtime/plugin.h"
#include "kernels/runtime/reserved_gpu_memory.h"
#include "kernels/runtime/upload.h"

namespace hark::cuda {
namespace {

constexpr int kOldestMajor = 8;  // compute capability 8.0: asynchronous copies, bf16 products

std::string version_text(int version) { return concat(version / 1000, ".", version % 1000 / 10); }

// Whole 256 bytes, so that kernels may read whole sectors.
void* allocate(int index, size_t bytes) {
    CUDA_CHECK(cudaSetDevice(index));
    void* memory = nullptr;
    bytes = (bytes + 255) / 256 * 256;
    const cudaError_t status = cudaMalloc(&memory, bytes);
    cudaGetLastError();  // clears the error, which is in status
    if (status == cudaErrorMemoryAllocation) throw_no_gpu_memory(bytes);
    require(status == cudaSuccess, "cudaMalloc: ", cudaGetErrorString(status));
    return memory;
}

void release(void* memory) { cudaFree(memory); }

// Host memory that the GPU accesses directly.
void* allocate_pinned(int index, size_t bytes) {
    CUDA_CHECK(cudaSetDevice(index));
    void* memory = nullptr;
    const cudaError_t status = cudaMallocHost(&memory, bytes);
    cudaGetLastError();  // clears the error, which is in status
    if (status != cudaSuccess)
        throw OutOfMemory(concat("out of pinned memory: needed ", (bytes + (1 << 20) - 1) >> 20,
                                 " MiB: ", cudaGetErrorString(status)));
    return memory;
}

void release_pinned(void* memory) { cudaFreeHost(memory); }

void write_pinned(int, void* to, const void* from, size_t bytes) { std::memcpy(to, from, bytes); }

__global__ void nothing_kernel() {}

// Whether the current GPU's code has programmatic dependent launch (code compiled from PTX of an
// older architecture does not) and the driver's graphs record it (from CUDA 12.3).
bool has_overlaps() {
    cudaFuncAttributes found;
    int driver = 0;
    CUDA_CHECK(cudaFuncGetAttributes(&found, nothing_kernel));
    CUDA_CHECK(cudaDriverGetVersion(&driver));
    return found.ptxVersion >= 90 && driver >= 12030;
}

// Throws Error unless GPU `index` exists and can run this library's kernels.
void check_gpu(int index) {
    int runtime = 0, driver = 0, count = 0;
    CUDA_CHECK(cudaRuntimeGetVersion(&runtime));
    CUDA_CHECK(cudaDriverGetVersion(&driver));
    require(driver > 0, "no GPU can be used: found no NVIDIA driver; install one for CUDA ",
            version_text(runtime), " or newer");
    const cudaError_t status = cudaGetDeviceCount(&count);
    cudaGetLastError();  // clears the error, which is in status
    require(status != cudaErrorInsufficientDriver,
            "no GPU can be used: the NVIDIA driver is too "
            "old: it supports CUDA ",
            version_text(driver), ", needed is ", version_text(runtime), "; update the driver");
    require(status == cudaSuccess || status == cudaErrorNoDevice,
            "no GPU can be used: the driver says: ", cudaGetErrorString(status));
    require(count > 0, "no GPU can be used: the driver finds none");
    require(index >= 0 && index < count, "no GPU ", index, ": found ", count,
            count == 1 ? " (0)" : concat(" (0 to ", count - 1, ")"));
    cudaDeviceProp gpu;
    CUDA_CHECK(cudaGetDeviceProperties(&gpu, index));
    require(gpu.major >= kOldestMajor, "GPU ", index, " (", gpu.name, ") has compute capability ",
            gpu.major, ".", gpu.minor, "; needed is ", kOldestMajor, ".0 or newer");
}

// Handles, and the thread that loads cuBLASLt's kernels meanwhile.
struct OwnHandles : Handles {
    std::jthread loading;
};

Context make_context(int index, int threads) {
    check_gpu(index);
    CUDA_CHECK(cudaSetDevice(index));
    auto handles = std::make_shared<OwnHandles>();
    CUDA_CHECK(cudaStreamCreateWithFlags(&handles->stream, cudaStreamNonBlocking));
    handles->overlaps = has_overlaps();
    CUBLAS_CHECK(cublasLtCreate(&handles->lt));
    CUDA_CHECK(cudaMalloc(&handles->workspace, kWorkspaceBytes));
    handles->loading = first_product(index, make_context);
    void* stream = handles->stream;
    MemorySource memory{Device::cuda, index, allocate, release, write_gpu_memory};
    if (can_reserve_memory(index)) memory.reserve = reserve_gpu_memory;
    return Context(Device::cuda, index, memory,
                   {Device::cpu, index, allocate_pinned, release_pinned, write_pinned}, threads,
                   stream, std::shared_ptr<Handles>(std::move(handles)));
}

// From memory that is not pinned CUDA copies the bytes before it returns.
void upload(Context& ctx, void* to, const void* from, size_t bytes) {
    enter(ctx, {});
    CUDA_CHECK(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream_of(ctx)));
}

void download(Context& ctx, void* to, const void* from, size_t bytes) {
    enter(ctx, {});
    CUDA_CHECK(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream_of(ctx)));
    CUDA_CHECK(cudaStreamSynchronize(stream_of(ctx)));
}

std::shared_ptr<void> capture(Context& ctx, const std::function<void()>& work) {
    enter(ctx, {});
    CUDA_CHECK(cudaStreamBeginCapture(stream_of(ctx), cudaStreamCaptureModeThreadLocal));
    cudaGraph_t graph = nullptr;
    try {
        work();
    } catch (...) {
        cudaStreamEndCapture(stream_of(ctx), &graph);
        if (graph) cudaGraphDestroy(graph);
        cudaGetLastError();
        throw;
    }
    CUDA_CHECK(cudaStreamEndCapture(stream_of(ctx), &graph));
    cudaGraphExec_t replayed = nullptr;  // its kernels keep the priorities of their streams
    const cudaError_t status =
        cudaGraphInstantiate(&replayed, graph, cudaGraphInstantiateFlagUseNodePriority);
    cudaGraphDestroy(graph);
    if (status != cudaSuccess) throw_cuda_error(status, "cudaGraphInstantiate");
    return {replayed, [](void* made) { cudaGraphExecDestroy(static_cast<cudaGraphExec_t>(made)); }};
}

void replay(Context& ctx, void* graph) {
    enter(ctx, {});
    CUDA_CHECK(cudaGraphLaunch(static_cast<cudaGraphExec_t>(graph), stream_of(ctx)));
}

std::shared_ptr<void> make_stream(const Context& ctx) {
    enter(ctx, {});
    int lowest = 0, highest = 0;  // priorities; a context's stream has the lowest
    CUDA_CHECK(cudaDeviceGetStreamPriorityRange(&lowest, &highest));
    cudaStream_t made = nullptr;
    CUDA_CHECK(cudaStreamCreateWithPriority(&made, cudaStreamNonBlocking, highest));
    return {made, [](void* stream) { cudaStreamDestroy(static_cast<cudaStream_t>(stream)); }};
}

void follow(Context& ctx, void* later, void* earlier) {
    enter(ctx, {});
    cudaEvent_t here = nullptr;
    CUDA_CHECK(cudaEventCreateWithFlags(&here, cudaEventDisableTiming));
    cudaError_t status = cudaEventRecord(here, static_cast<cudaStream_t>(earlier));
    if (status == cudaSuccess)
        status = cudaStreamWaitEvent(static_cast<cudaStream_t>(later), here, 0);
    cudaEventDestroy(here);  // freed once it has been reached
    require(status == cudaSuccess, "cudaStreamWaitEvent: ", cudaGetErrorString(status));
}

// Without what the first product takes for a moment.
size_t free_memory(const Context& ctx) {
    enter(ctx, {});
    std::jthread& loading = static_cast<OwnHandles&>(handles_of(ctx)).loading;
    if (loading.joinable()) loading.join();
    size_t free = 0, total = 0;
    CUDA_CHECK(cudaMemGetInfo(&free, &total));
    return free;
}

int compute_capability(int index) {
    int major = 0, minor = 0;
    const bool there =
        cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, index) == cudaSuccess &&
        cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, index) == cudaSuccess;
    cudaGetLastError();  // else the next launch would find it
    return there ? 10 * major + minor : 0;
}

void synchronize(Context& ctx) {
    enter(ctx, {});
    CUDA_CHECK(cudaStreamSynchronize(stream_of(ctx)));
}

}  // namespace

Handles::~Handles() {
    plans.clear();
    if (workspace) cudaFree(workspace);
    if (lt) cublasLtDestroy(lt);
    if (stream) cudaStreamDestroy(stream);
}

void enter(const Context& ctx, std::initializer_list<const Tensor*> tensors) {
    require(ctx.on_cuda(), "expected a context on a GPU, found one on the CPU");
    for (const Tensor* tensor : tensors)
        require(!*tensor || tensor->device == Device::cuda, "expected tensors on the GPU, found ",
                *tensor, " on the CPU");
    CUDA_CHECK(cudaSetDevice(ctx.device_index));
}

}  // namespace hark::cuda

HARK_EXPORT int hark_cuda_abi() { return hark::kCudaAbi; }

HARK_EXPORT const hark::CudaRuntime* hark_cuda_runtime() {
    namespace cuda = hark::cuda;
    static const hark::CudaRuntime runtime = {
        .make_context = cuda::make_context,
        .upload = cuda::upload,
        .download = cuda::download,
        .capture = cuda::capture,
        .replay = cuda::replay,
        .make_stream = cuda::make_stream,
        .follow = cuda::follow,
        .free_memory = cuda::free_memory,
        .compute_capability = cuda::compute_capability,
        .synchronize = cuda::synchronize,
    };
    return &runtime;
}
