// Log-mel spectra of an hour of noise: computed a chunk at a time as mel does it, and on a GPU also
// all at once in its own memory.
#include <cstdio>

#include "audio/log_mel.h"
#include "commands.h"
#include "harness.h"
#include "kernels/runtime/backend.h"
#include "kernels/runtime/cuda_library.h"
#include "kernels/runtime/transfer.h"

namespace hark::bench {
namespace {

constexpr int64_t kFrames = 360000, kChunkFrames = 3000;
constexpr double kSeconds = static_cast<double>(kFrames) / 100;

struct Options {
    ComputeOptions compute;

    void flags(Flags& flags) { compute.flags(flags); }
};

void row(const char* what, int n_mels, double ms) {
    std::printf("%s\t%d mels\t%.3f\t%.0f\tx real time\n", what, n_mels, ms, kSeconds / ms * 1e3);
    std::fflush(stdout);
}

void run(const Options& options, Console& console) {
    Context ctx = options.compute.context(console);
    const int64_t length = (kFrames - 1) * mel_frame::kHop + mel_frame::kWindow;
    const std::vector<float> samples = normal_values(length, 5);
    std::printf("what\tmels\tms an hour\trate\tunit\n");
    for (const int n_mels : {80, 128}) {
        const MelFrames compute(n_mels, &ctx);
        std::vector<float> frames(static_cast<size_t>(kFrames * n_mels));
        const double ms = median_ms([&] {
            for (int64_t at = 0; at < kFrames; at += kChunkFrames)
                compute(frames.data() + at * n_mels, samples.data() + at * mel_frame::kHop,
                        kChunkFrames);
        });
        row(ctx.on_cuda() ? "chunks of 30 s, copies included" : "chunks of 30 s", n_mels, ms);
        if (!ctx.on_cuda()) continue;
        const Arena::Scope scope(ctx.arena);
        const Tensor from = to_device(
            ctx, Tensor(const_cast<float*>(samples.data()), Dtype::f32, {std::ssize(samples)}));
        const Tensor to = ctx.arena.tensor(Dtype::f32, {kFrames, n_mels});
        constexpr int kCalls = 10;
        const double all = median_ms([&] {
            for (int i = 0; i < kCalls; ++i)
                compute.launch(to.as<float>(), from.as<float>(), kFrames);
            cuda_runtime().synchronize(ctx);
        });
        row("kernel alone", n_mels, all / kCalls);
    }
}

}  // namespace

int bench_mel(int argc, char** argv) {
    return tool_main<Options>({.name = "bench mel", .summary = "Times log-mel spectra."}, argc,
                              argv, run);
}

}  // namespace hark::bench
