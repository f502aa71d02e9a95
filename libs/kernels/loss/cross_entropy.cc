#include <algorithm>
#include <cmath>

#include "kernels/checks.h"
#include "kernels/cpu/cpu.h"
#include "kernels/elementwise/cast_to_f32.h"
#include "kernels/gradients.h"
#include "kernels/ops_table.h"
#include "kernels/runtime/parallel.h"

namespace hark {

void cross_entropy(Context& ctx, Tensor losses, Tensor logits, Tensor targets, int64_t n_vocab,
                   float scale) {
    require(logits.rank == 2 && logits.dim(1) <= INT32_MAX / 2,
            "cross_entropy: expected logits (T, V), found ", logits);
    const int64_t rows = logits.dim(0), columns = logits.dim(1);
    require(0 < n_vocab && n_vocab <= columns, "cross_entropy: expected 1 to ", columns,
            " tokens in the vocabulary, found ", n_vocab);
    check_tensor("cross_entropy", "logits", logits, logits.dtype, {rows, columns});
    check_tensor("cross_entropy", "losses", losses, Dtype::f32, {rows});
    check_tensor("cross_entropy", "targets", targets, Dtype::i32, {rows});
    if (ctx.on_cuda())
        return cuda_ops().cross_entropy(ctx, losses, logits, targets, n_vocab, scale);
    if (logits.dtype == Dtype::bf16) {
        CastToF32 wide(ctx, "cross_entropy");
        const Tensor values = scale == 0 ? wide.in(logits) : wide.inout(logits);
        cross_entropy(ctx, losses, values, targets, n_vocab, scale);
        return wide.round();
    }
    const int32_t* wanted = targets.as<int32_t>();
    for (int64_t t = 0; t < rows; ++t)
        require(-1 <= wanted[t] && wanted[t] < n_vocab, "cross_entropy: target ", wanted[t],
                " is outside the vocabulary of ", n_vocab);
    float *values = logits.as<float>(), *to = losses.as<float>();
    parallel_for(ctx.threads, rows, [&](int64_t t) {
        const CpuKernels& cpu = cpu_kernels();
        float* row = values + t * columns;
        const int32_t target = wanted[t];
        to[t] = 0;
        if (target < 0) {
            if (scale != 0) std::fill(row, row + columns, 0.0f);
            return;
        }
        if (scale == 0) {
            to[t] = static_cast<float>(cpu.log_sum_exp(row, n_vocab) - row[target]);
            return;
        }
        const float top = cpu.largest(row, n_vocab), distance = top - row[target];
        const float total = cpu.softmax(row, n_vocab, 1);
        to[t] = std::log(total) + distance;
        // A loss that is not finite makes the norm of the gradients NaN, and the step is skipped.
        const float factor = std::isfinite(to[t]) ? scale / total : to[t];
        cpu.multiply(row, row, factor, n_vocab);
        row[target] -= scale;
        std::fill(row + n_vocab, row + columns, 0.0f);
    });
}

}  // namespace hark
