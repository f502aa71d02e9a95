// clamped_swiglu on the GPU.
#include "kernels/elementwise/clamped_swiglu.cuh"
#include "kernels/elementwise/rows.cuh"

namespace hark::cuda {
namespace {

struct Clamped {
    int64_t rows, n, gate_width, up_width;
    float slope, limit;
};

template <class T>
__global__ void clamped_kernel(Clamped args, T* y, const T* gate, const T* up) {
    pdl_trigger();
    pdl_wait();
    const int64_t t = row_of_thread();
    if (t >= args.rows) return;
    for (int64_t c = threadIdx.x; c < args.n; c += blockDim.x) {
        const float value =
            clamped_swiglu(to_f32(gate[t * args.gate_width + c]), to_f32(up[t * args.up_width + c]),
                           args.slope, args.limit);
        y[t * args.n + c] = from_f32<T>(value);
    }
}

}  // namespace

void clamped_swiglu(Context& ctx, Tensor y, const Columns& gate, const Columns& up, float slope,
                    float limit) {
    enter(ctx, {&y, &gate.rows, &up.rows});
    const Clamped args{y.dim(0), y.dim(1), gate.rows.dim(1), up.rows.dim(1), slope, limit};
    if (args.rows == 0 || args.n == 0) return;
    with_float_type(y.dtype, [&](auto value) {
        using T = decltype(value);
        const RowGrid grid(args.rows, args.n);
        pdl_launch(ctx, clamped_kernel<T>, grid.blocks, grid.threads, 0, args,
                   static_cast<T*>(y.data), static_cast<const T*>(gate.rows.data) + gate.first,
                   static_cast<const T*>(up.rows.data) + up.first);
    });
}

}  // namespace hark::cuda
