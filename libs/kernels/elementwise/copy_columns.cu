// copy_columns on the GPU.
#include "kernels/cuda/cuda_common.cuh"

namespace hark::cuda {

void copy_columns(Context& ctx, const Columns& to, const Columns& from, int64_t n) {
    enter(ctx, {&to.rows, &from.rows});
    const int64_t rows = to.rows.dim(0);
    if (rows == 0) return;
    const size_t size = size_of(to.rows.dtype);
    const auto pitch = [&](const Columns& of) {
        return static_cast<size_t>(of.rows.dim(1)) * size;
    };
    const auto at = [&](const Columns& of) {
        return static_cast<std::byte*>(of.rows.data) + static_cast<size_t>(of.first) * size;
    };
    CUDA_CHECK(cudaMemcpy2DAsync(at(to), pitch(to), at(from), pitch(from),
                                 static_cast<size_t>(n) * size, static_cast<size_t>(rows),
                                 cudaMemcpyDeviceToDevice, stream_of(ctx)));
}

}  // namespace hark::cuda
