// gated_activation and its gradient on the GPU.
#include "kernels/elementwise/activations.cuh"
#include "kernels/elementwise/elementwise.cuh"

namespace hark::cuda {
namespace {

struct Gated {
    int64_t rows, n, gate_width, up_width;
    Activation activation;
};

template <int V, class T>
__global__ void gated_kernel(Gated args, T* y, const T* gate, const T* up) {
    pdl_trigger();
    pdl_wait();
    const int64_t t = row_of_thread();
    if (t >= args.rows) return;
    const int64_t step = int64_t{blockDim.x} * gridDim.y * V;
    for (int64_t c = (int64_t{blockIdx.y} * blockDim.x + threadIdx.x) * V; c < args.n; c += step) {
        const Pack<T, V> gates = load_pack<V>(gate + t * args.gate_width + c);
        const Pack<T, V> ups = load_pack<V>(up + t * args.up_width + c);
        Pack<T, V> out;
        for (int v = 0; v < V; ++v)
            out.values[v] = from_f32<T>(activate(to_f32(gates.values[v]), args.activation) *
                                        to_f32(ups.values[v]));
        store_pack(y + t * args.n + c, out);
    }
}

struct GatedBackward {
    int64_t rows, n, d_gate_width, d_up_width, gate_width, up_width;
};

template <Activation f, class T>
__global__ void gated_backward_kernel(GatedBackward args, T* d_gate, T* d_up, const T* dy,
                                      const T* gate, const T* up) {
    const int64_t t = row_of_thread();
    if (t >= args.rows) return;
    for (int64_t c = threadIdx.x; c < args.n; c += blockDim.x) {
        const float from = to_f32(dy[t * args.n + c]), x = to_f32(gate[t * args.gate_width + c]);
        const float by = to_f32(up[t * args.up_width + c]);
        d_gate[t * args.d_gate_width + c] = from_f32<T>(from * slope_of<f>(x) * by);
        d_up[t * args.d_up_width + c] = from_f32<T>(from * value_of<f>(x));
    }
}

template <class T>
auto backward_of(Activation f) {
    if (f == Activation::gelu) return gated_backward_kernel<Activation::gelu, T>;
    if (f == Activation::silu) return gated_backward_kernel<Activation::silu, T>;
    return gated_backward_kernel<Activation::gelu_tanh, T>;
}

}  // namespace

void gated_activation_backward(Context& ctx, const Columns& d_gate, const Columns& d_up, Tensor dy,
                               const Columns& gate, const Columns& up, Activation f) {
    enter(ctx, {&d_gate.rows, &d_up.rows, &dy, &gate.rows, &up.rows});
    const GatedBackward args{dy.dim(0),        dy.dim(1),        d_gate.rows.dim(1),
                             d_up.rows.dim(1), gate.rows.dim(1), up.rows.dim(1)};
    if (args.rows == 0 || args.n == 0) return;
    with_activation_type("gated_activation_backward", dy, [&](auto value) {
        using T = decltype(value);
        const auto at = [](const Columns& of) { return static_cast<T*>(of.rows.data) + of.first; };
        const RowGrid grid(args.rows, args.n);
        backward_of<T>(f)<<<grid.blocks, grid.threads, 0, stream_of(ctx)>>>(
            args, at(d_gate), at(d_up), static_cast<const T*>(dy.data), at(gate), at(up));
        CUDA_CHECK(cudaGetLastError());
    });
}

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
        const int64_t across = args.n / (packs ? kPack : 1);
        RowGrid grid(args.rows, across);
        grid.blocks.y =
            static_cast<unsigned>(std::min(ceil_div(across, grid.threads.x), kMostGridY));
        pdl_launch(ctx, packs ? gated_kernel<kPack, T> : gated_kernel<1, T>, grid.blocks,
                   grid.threads, 0, args, static_cast<T*>(y.data), gates, ups);
    });
}

}  // namespace hark::cuda
