#include "gpt/train/train_metrics.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <fstream>

#include "core/error.h"
#include "kernels/gradients.h"
#include "kernels/runtime/transfer.h"

namespace hark::gpt {
namespace {

std::string format(const char* pattern, double value) {
    char text[64];
    std::snprintf(text, sizeof text, pattern, value);
    return text;
}

}  // namespace

std::string Metrics::line() const {
    return concat(step, format("\t%.6f\t", result.loss), val_loss ? format("%.6f", *val_loss) : "",
                  format("\t%.6g", result.rate), format("\t%.4f", result.norm),
                  format("\t%.1f", ms), format("\t%.0f", tokens_per_second),
                  format("\t%.3f\t", fraction), hellaswag ? format("%.4f", *hellaswag) : "", "\n");
}

std::string Metrics::progress() const {
    return format("loss %.3f", result.loss) + format(", %.0f tokens/s", tokens_per_second);
}

std::vector<EventFile::Scalar> Metrics::scalars() const {
    std::vector<EventFile::Scalar> all = {{"loss", result.loss},
                                          {"learning_rate", result.rate},
                                          {"norm", result.norm},
                                          {"tokens_per_second", tokens_per_second}};
    if (val_loss) all.emplace_back("val_loss", *val_loss);
    if (hellaswag) all.emplace_back("hellaswag", *hellaswag);
    return all;
}

bool needs_heading(int fd, bool begins) {
    struct stat info {};
    if (::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) return begins;
    // The descriptor may be for writing alone.
    std::ifstream file("/proc/self/fd/" + std::to_string(fd));
    for (std::string line; std::getline(file, line);)
        if (line + "\n" == Metrics::kHeading) return false;
    return true;
}

double milliseconds_since(Clock::time_point begin) {
    return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

double measured_peak_flops(Context& ctx, Dtype type) {
    const Arena::Scope scope(ctx.arena);
    const int64_t size = ctx.on_cuda() ? 8192 : 1024;
    Tensor x = ctx.arena.tensor(Dtype::f32, {size, size});
    fill_from_host(ctx, x, [](Tensor host) {
        for (int64_t i = 0; i < host.size(); ++i)
            host.as<float>()[i] = 1e-3f * static_cast<float>(i % 97);
    });
    if (type != Dtype::f32) {
        const Tensor rounded = ctx.arena.tensor(type, {size, size});
        stochastic_round(ctx, rounded.reshaped({x.size()}), x.reshaped({x.size()}), 0);
        x = rounded;
    }
    Tensor y = ctx.arena.tensor(type, {size, size});
    double best = 0;
    for (int i = 0; i < 4; ++i) {
        wait_for(ctx);
        const Clock::time_point begin = Clock::now();
        linear_forward(ctx, y, x, x, {}, {});
        wait_for(ctx);
        const auto n = static_cast<double>(size);
        best = std::max(best, 2e3 * n * n * n / milliseconds_since(begin));
    }
    return best;
}

}  // namespace hark::gpt
