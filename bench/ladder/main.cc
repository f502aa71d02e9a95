// bench-ladder [OPERATION...]: an operation in forms from the plainest to Hopper's own, as TSV on
// stdout: operation, form, shape, microseconds, TFLOP/s, TB/s, the fraction of what this card's
// limits allow, the predicted and the measured gain over the form before, and the largest error as
// a share of the largest value. Each form is checked against sums in double on the host; exit 1 if
// one is wrong. Operations: product, attention, norm, softmax, mel. `costs` prints what a step of
// one row costs in addition to its bytes: what, form, value, unit.
#include <cstdio>
#include <iostream>

#include "audio/log_mel.h"
#include "kernels/cuda_timing.h"
#include "ladder/ladder.h"
#include "ladder/references.h"
#include "operations/speed/gpu_speed.h"

namespace hark::ladder {
namespace {

constexpr double kSlowUs = 2000;  // above it a form is not repeated in a graph

struct Work {
    const char* what;
    std::string shape;
    double flops, bytes;            // of bf16 that it must do, and that it must move, at least
    double tolerance;               // of the error
    std::function<double()> error;  // of the result in memory
};

template <class T>
T* at(const Tensor& tensor) {
    return static_cast<T*>(tensor.data);
}

std::vector<float> values_of(Context& ctx, const Tensor& tensor) {
    std::vector<float> values(static_cast<size_t>(tensor.size()));
    if (tensor.dtype == Dtype::f32) {
        cuda_runtime().download(ctx, values.data(), tensor.data, tensor.bytes());
        return values;
    }
    std::vector<bf16_t> halves(values.size());
    cuda_runtime().download(ctx, halves.data(), tensor.data, tensor.bytes());
    for (size_t i = 0; i < values.size(); ++i) values[i] = to_float(halves[i]);
    return values;
}

double time_of(Context& ctx, const std::function<void(cudaStream_t)>& launch) {
    const auto stream = static_cast<cudaStream_t>(ctx.stream);
    const double once = microseconds_in_place(
        ctx, [] {}, [&] { launch(stream); });
    return once > kSlowUs ? once : microseconds(ctx, [&](int) { launch(stream); });
}

// Whether all forms are right.
bool climb(Context& ctx, const Work& work, const Tensor& result, const std::vector<Rung>& rungs) {
    double before = 0;
    bool right = true;
    for (const Rung& rung : rungs) {
        check(cudaMemset(result.data, 0xff, result.bytes()), "memset");  // no number
        rung.launch(static_cast<cudaStream_t>(ctx.stream));
        check(cudaGetLastError(), rung.name);
        cuda_runtime().synchronize(ctx);
        const double error = work.error();
        const bool is_right = error <= work.tolerance;  // false for an error that is NaN
        if (!is_right)
            std::cerr << "bench-ladder: " << work.what << ", " << rung.name << ": an error of "
                      << error << ", expected " << work.tolerance << " at most\n";
        right = right && is_right;
        const double us = time_of(ctx, rung.launch);
        const double of_products = work.flops > 0 ? work.flops * 1e-6 / limits.bf16 : 0;
        const double least = std::max(of_products, work.bytes * 1e-6 / limits.copy);
        std::printf("%s\t%s\t%s\t%.1f\t%.2f\t%.3f\t%.4f\t", work.what, rung.name,
                    work.shape.c_str(), us, work.flops / us * 1e-6, work.bytes / us * 1e-6,
                    least / us);
        if (before > 0)
            std::printf("%.2f\t%.2f", rung.predicted, before / us);
        else
            std::printf("\t");
        std::printf("\t%.1e\n", error);
        std::fflush(stdout);
        before = us;
    }
    return right;
}

bool climb_product(Context& ctx) {
    constexpr int m = 1536, n = 5120, k = 1280;
    const Arena::Scope scope(ctx.arena);
    const Tensor x = random_tensor(ctx, Dtype::bf16, {m, k}),
                 w = random_tensor(ctx, Dtype::bf16, {n, k});
    const Tensor y = ctx.arena.tensor(Dtype::bf16, {m, n});
    const std::vector<float> xs = values_of(ctx, x), ws = values_of(ctx, w);
    const auto error = [&] { return product_error(values_of(ctx, y), xs, ws, n, k); };
    return climb(
        ctx,
        {"product", concat(m, "x", k, "x", n), 2.0 * m * n * k, bytes_of({x, w, y}), 4e-3, error},
        y, product_rungs({at<Bf16>(y), at<Bf16>(x), at<Bf16>(w), m, n, k}));
}

bool climb_attention(Context& ctx) {
    constexpr int heads = 80, t = 1536;
    const Arena::Scope scope(ctx.arena);
    const auto tensor = [&] { return random_tensor(ctx, Dtype::bf16, {heads, t, kHeadSize}); };
    const Tensor q = tensor(), k = tensor(), v = tensor();
    const Tensor out = ctx.arena.tensor(Dtype::bf16, {heads, t, kHeadSize});
    const Tensor scores = ctx.arena.tensor(Dtype::f32, {heads, t, t});
    const std::vector<float> qs = values_of(ctx, q), ks = values_of(ctx, k), vs = values_of(ctx, v);
    const auto error = [&] { return attention_error(values_of(ctx, out), qs, ks, vs, t); };
    return climb(ctx,
                 {"attention", concat("H", heads, " T", t, " D", kHeadSize),
                  4.0 * heads * t * t * kHeadSize, bytes_of({q, k, v, out}), 1e-2, error},
                 out,
                 attention_rungs({at<Bf16>(out), at<Bf16>(q), at<Bf16>(k), at<Bf16>(v),
                                  at<float>(scores), heads, t}));
}

bool climb_norm(Context& ctx) {
    constexpr int rows = 24000;
    const Arena::Scope scope(ctx.arena);
    const Tensor x = random_tensor(ctx, Dtype::bf16, {rows, kNormWidth});
    const Tensor y = ctx.arena.tensor(Dtype::bf16, {rows, kNormWidth});
    const Tensor w = random_tensor(ctx, Dtype::f32, {kNormWidth});
    const Tensor b = random_tensor(ctx, Dtype::f32, {kNormWidth});
    const std::vector<float> xs = values_of(ctx, x), ws = values_of(ctx, w), bs = values_of(ctx, b);
    const auto error = [&] { return norm_error(values_of(ctx, y), xs, ws, bs); };
    return climb(ctx, {"norm", concat(rows, "x", kNormWidth), 0, bytes_of({x, y}), 4e-3, error}, y,
                 norm_rungs({at<Bf16>(y), at<Bf16>(x), at<float>(w), at<float>(b), rows}));
}

bool climb_softmax(Context& ctx) {
    constexpr int rows = 24000;
    const Arena::Scope scope(ctx.arena);
    const Tensor x = random_tensor(ctx, Dtype::f32, {rows, kSoftmaxWidth});
    const Tensor y = ctx.arena.tensor(Dtype::f32, {rows, kSoftmaxWidth});
    const std::vector<float> xs = values_of(ctx, x);
    const auto error = [&] { return softmax_error(values_of(ctx, y), xs); };
    return climb(ctx,
                 {"softmax", concat(rows, "x", kSoftmaxWidth), 0, bytes_of({x, y}), 1e-5, error}, y,
                 softmax_rungs({at<float>(y), at<float>(x), rows}));
}

// Our frames are computed in double, cuFFT's in float32: the error is the difference of the two.
bool climb_mel(Context& ctx) {
    constexpr int count = 24000, n_mels = 80;
    const Arena::Scope scope(ctx.arena);
    const Tensor samples =
        random_tensor(ctx, Dtype::f32, {(count - 1) * mel_frame::kHop + mel_frame::kWindow});
    const Tensor frames = ctx.arena.tensor(Dtype::f32, {count, n_mels});
    const std::vector<float> by_mel = mel_filters(n_mels);
    std::vector<float> by_bin(by_mel.size());
    for (int i = 0; i < n_mels; ++i)
        for (int bin = 0; bin < mel_frame::kBins; ++bin)
            by_bin[static_cast<size_t>(bin * n_mels + i)] =
                by_mel[static_cast<size_t>(i * mel_frame::kBins + bin)];
    const Tensor filters = ctx.arena.tensor(Dtype::f32, {mel_frame::kBins, n_mels});
    cuda_runtime().upload(ctx, filters.data, by_bin.data(), filters.bytes());
    CufftMel peer(at<float>(filters), n_mels, count);
    const MelFrames ours(n_mels, &ctx);
    std::vector<float> expected(static_cast<size_t>(count * n_mels));
    const std::vector<float> on_host = values_of(ctx, samples);
    const MelFrames on_cpu(n_mels);
    on_cpu(expected.data(), on_host.data(), count);
    const auto error = [&] { return largest_difference(values_of(ctx, frames), expected); };
    const std::vector<Rung> rungs = {
        {"cuFFT, float32", 1,
         [&](cudaStream_t s) { peer.launch(at<float>(frames), at<float>(samples), s); }},
        {"ours, double", 1,
         [&](cudaStream_t) { ours.launch(at<float>(frames), at<float>(samples), count); }}};
    return climb(
        ctx,
        {"mel", concat(count, " frames of ", n_mels), 0, bytes_of({samples, frames}), 1e-3, error},
        frames, rungs);
}

void print_costs(Context& ctx) {
    const Arena::Scope scope(ctx.arena);
    const Tensor data = random_tensor(ctx, Dtype::f32, {int64_t{1} << 28});
    const Tensor counter = ctx.arena.tensor(Dtype::i32, {1});
    std::printf("cost\tform\tvalue\tunit\n");
    for (const Cost& cost : launch_costs({ctx, data.data, data.bytes(), at<unsigned>(counter)}))
        std::printf("%s\t%s\t%.3f\t%s\n", cost.what, cost.form.c_str(), cost.value, cost.unit);
}

bool run() {
    Context ctx = cuda_runtime().make_context(0, 1);
    limits.copy = gpu_copy_speed(ctx) * 1e-3;
    limits.bf16 = gpu_product_speed(ctx, Dtype::bf16) * 1e-3;
    std::printf("# limits: copy %.3f TB/s, product in bf16 %.1f TFLOP/s\n", limits.copy,
                limits.bf16);
    if (is_chosen("costs")) print_costs(ctx);
    if (chosen == std::vector<std::string_view>{"costs"}) return true;
    std::printf(
        "operation\tform\tshape\tus\tTFLOP/s\tTB/s\tfraction\tpredicted gain\tgain\terror\n");
    using Climb = bool (*)(Context&);
    constexpr std::pair<const char*, Climb> kAll[] = {{"product", climb_product},
                                                      {"attention", climb_attention},
                                                      {"norm", climb_norm},
                                                      {"softmax", climb_softmax},
                                                      {"mel", climb_mel}};
    for (const std::string_view word : chosen)
        require(word == "costs" || std::any_of(std::begin(kAll), std::end(kAll),
                                               [&](const auto& one) { return word == one.first; }),
                word, ": expected product, attention, norm, softmax, mel or costs");
    bool right = true;
    for (const auto& [what, climb_it] : kAll)
        if (is_chosen(what)) right = climb_it(ctx) && right;
    return right;
}

}  // namespace
}  // namespace hark::ladder

int main(int argc, char** argv) {
    hark::chosen.assign(argv + 1, argv + argc);
    try {
        return hark::ladder::run() ? 0 : 1;
    } catch (const std::exception& error) {
        std::cerr << "bench-ladder: " << error.what() << "\n";
        return 1;
    }
}
