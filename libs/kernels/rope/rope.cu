// rope on the GPU: one block per row.
#include "kernels/elementwise/elementwise.cuh"

namespace hark::cuda {
namespace {

constexpr int kRopeThreads = 256;

struct TurnArgs {
    const int* position;
    const float* frequencies;
    float scale, direction;  // direction: 1, or -1 for the transpose
    int64_t width, first;
    int heads, d, half;  // half: number of frequencies
};

template <class T>
__global__ void __launch_bounds__(kRopeThreads) turn_kernel(TurnArgs args, T* x) {
    T* row = x + blockIdx.x * args.width + args.first;
    const auto position = static_cast<float>(args.position[blockIdx.x]);
    for (int i = threadIdx.x; i < args.heads * args.half; i += kRopeThreads) {
        const int h = i / args.half, channel = i - h * args.half;
        float sine, cosine;
        sincosf(position * args.frequencies[channel], &sine, &cosine);
        const float c = cosine * args.scale, s = sine * args.scale * args.direction;
        T *low = row + h * args.d + channel, *high = low + args.half;
        const float a = to_f32(*low), b = to_f32(*high);
        *low = from_f32<T>(a * c - b * s);
        *high = from_f32<T>(b * c + a * s);
    }
}

}  // namespace

void rope(Context& ctx, const Columns& x, int64_t heads, int64_t d, Tensor position, const Rope& by,
          bool back) {
    enter(ctx, {&x.rows, &position, &by.frequencies});
    const int64_t rows = x.rows.dim(0), half = by.frequencies.dim(0);
    require(heads * d <= INT32_MAX && rows <= INT32_MAX, "rope: expected fewer than 2^31 rows and ",
            "columns, found ", x.rows);
    if (rows == 0 || half == 0) return;
    const TurnArgs args{position.as<int32_t>(),
                        by.frequencies.as<float>(),
                        by.scale,
                        back ? -1.0f : 1.0f,
                        x.rows.dim(1),
                        x.first,
                        static_cast<int>(heads),
                        static_cast<int>(d),
                        static_cast<int>(half)};
    with_activation_type("rope", x.rows, [&](auto value) {
        using T = decltype(value);
        turn_kernel<T><<<static_cast<unsigned>(rows), kRopeThreads, 0, stream_of(ctx)>>>(
            args, static_cast<T*>(x.rows.data));
        CUDA_CHECK(cudaGetLastError());
    });
}

}  // namespace hark::cuda
