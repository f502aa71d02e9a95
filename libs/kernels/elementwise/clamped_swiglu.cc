#include <algorithm>
#include <cmath>

#include "kernels/checks.h"
#include "kernels/ops_table.h"
#include "kernels/runtime/parallel.h"

namespace hark {

void clamped_swiglu(Context& ctx, Tensor y, const Columns& gate, const Columns& up, float slope,
                    float limit) {
    constexpr const char* kOp = "clamped_swiglu";
    require(y.rank == 2 && is_float(y.dtype) && limit > 0, kOp,
            ": expected y (T, N) in f32, f16 or bf16 and a limit above 0, found ", y, " and ",
            limit);
    const int64_t n = y.dim(1);
    check_columns(kOp, "gate", gate, y.dim(0), n, y.dtype);
    check_columns(kOp, "up", up, y.dim(0), n, y.dtype);
    if (ctx.on_cuda()) return cuda_ops().clamped_swiglu(ctx, y, gate, up, slope, limit);
    const int threads = y.size() < 16384 ? 1 : ctx.threads;
    parallel_for(threads, y.dim(0), [&](int64_t t) {
        const float* gates = gate.rows.as<float>() + t * gate.rows.dim(1) + gate.first;
        const float* ups = up.rows.as<float>() + t * up.rows.dim(1) + up.first;
        float* to = y.as<float>() + t * n;
        for (int64_t c = 0; c < n; ++c) {
            const float g = std::min(gates[c], limit), u = std::clamp(ups[c], -limit, limit);
            to[c] = (u + 1) * g / (1 + std::exp(-slope * g));
        }
    });
}

}  // namespace hark
