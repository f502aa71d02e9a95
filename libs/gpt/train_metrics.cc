#include "gpt/train_metrics.h"

#include <algorithm>
#include <cstdio>

#include "core/error.h"
#include "kernels/ops.h"

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

double milliseconds_since(Clock::time_point begin) {
    return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

double measured_limit(Context& ctx) {
    const Arena::Scope scope(ctx.arena);
    constexpr int64_t kSize = 1024;
    Tensor x = ctx.arena.tensor(Dtype::f32, {kSize, kSize}), w = x, y = x;
    for (Tensor* t : {&w, &y}) *t = ctx.arena.tensor(Dtype::f32, {kSize, kSize});
    for (Tensor* t : {&x, &w})
        for (int64_t i = 0; i < t->size(); ++i)
            t->as<float>()[i] = 1e-3f * static_cast<float>(i % 97);
    double best = 0;
    for (int i = 0; i < 4; ++i) {
        const Clock::time_point begin = Clock::now();
        linear(ctx, y, x, {w});
        best = std::max(best, 2e3 * kSize * kSize * kSize / milliseconds_since(begin));
    }
    return best;
}

}  // namespace hark::gpt
