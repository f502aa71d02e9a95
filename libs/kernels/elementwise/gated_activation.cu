// gated_activation on the GPU.
#include "kernels/elementwise/rows.cuh"

namespace hark::cuda {
namespace {

struct Gated {
    int64_t rows, n, gate_width, up_width;
    Activation activation;
};

template <int V, class T>
__global__ void gated_kernel(Gated args, T* y, const T* gate, const T* up) {
    let_next_start();
    wait_for_previous();
    const int64_t t = row_of_thread();
    if (t >= args.rows) return;
    for (int64_t c = threadIdx.x * V; c < args.n; c += int64_t{blockDim.x} * V) {
        const Pack<T, V> gates = load_pack<V>(gate + t * args.gate_width + c);
        const Pack<T, V> ups = load_pack<V>(up + t * args.up_width + c);
        Pack<T, V> out;
        for (int v = 0; v < V; ++v)
            out.values[v] = from_f32<T>(activate(to_f32(gates.values[v]), args.activation) *
                                        to_f32(ups.values[v]));
        store_pack(y + t * args.n + c, out);
    }
}

}  // namespace

void gated_activation(Context& ctx, Tensor y, const Columns& gate, const Columns& up,
                      Activation f) {
    enter(ctx, {&y, &gate.rows, &up.rows});
    const Gated args{y.dim(0), y.dim(1), gate.rows.dim(1), up.rows.dim(1), f};
    if (args.rows == 0 || args.n == 0) return;
    with_float_type(y.dtype, [&](auto value) {
        using T = decltype(value);
        const T* gates = static_cast<const T*>(gate.rows.data) + gate.first;
        const T* ups = static_cast<const T*>(up.rows.data) + up.first;
        const bool packs = in_packs(args.n, {y.data, gates, ups}) && args.gate_width % kPack == 0 &&
                           args.up_width % kPack == 0;
        const RowGrid grid(args.rows, args.n / (packs ? kPack : 1));
        launch_early(ctx, packs ? gated_kernel<kPack, T> : gated_kernel<1, T>, grid.blocks,
                     grid.threads, 0, args, static_cast<T*>(y.data), gates, ups);
    });
}

}  // namespace hark::cuda
