#include "kernels/runtime/first_product.cuh"

#include <mutex>
#include <set>
#include <system_error>

#include "kernels/cuda/cuda_common.cuh"
#include "kernels/cuda/ops.cuh"

namespace hark::cuda {
namespace {

void multiply(Context ctx) {
    constexpr int64_t kRows = 1500, kColumns = 384;  // a window of Whisper tiny's encoder
    const Tensor x = ctx.arena.tensor(Dtype::f16, {kRows, kColumns});
    const Tensor w = ctx.arena.tensor(Dtype::f16, {kColumns, kColumns});
    const Tensor y = ctx.arena.tensor(Dtype::f16, {kRows, kColumns});
    cuda::linear(ctx, y, x, {w}, {}, {});
    CUDA_CHECK(cudaStreamSynchronize(stream_of(ctx)));
}

}  // namespace

std::jthread first_product(int index, Context (*make_context)(int index, int threads)) {
    static std::mutex mutex;
    static std::set<int> multiplied;
    const std::lock_guard lock(mutex);
    if (!multiplied.insert(index).second) return {};
    try {
        return std::jthread([=] {
            try {
                multiply(make_context(index, 1));
            } catch (const std::exception&) {
            }
        });
    } catch (
        const std::system_error&) {  // no thread is left: the tool's own product is the first
        return {};
    }
}

}  // namespace hark::cuda
