#include <cstring>

#include "kernels/checks.h"
#include "kernels/gradients.h"
#include "kernels/ops_table.h"
#include "kernels/runtime/parallel.h"

namespace hark {

void copy_columns(Context& ctx, const Columns& to, const Columns& from, int64_t n) {
    constexpr const char* kOp = "copy_columns";
    require(to.rows.rank == 2 && n > 0, kOp, ": expected columns of (T, W), found ", n, " of ",
            to.rows);
    const int64_t rows = to.rows.dim(0);
    check_columns(kOp, "to", to, rows, n, to.rows.dtype);
    check_columns(kOp, "from", from, rows, n, to.rows.dtype);
    if (ctx.on_cuda()) return cuda_ops().copy_columns(ctx, to, from, n);
    const auto size = static_cast<int64_t>(size_of(to.rows.dtype));
    const auto at = [&](const Columns& of, int64_t t) {
        return static_cast<std::byte*>(of.rows.data) + (t * of.rows.dim(1) + of.first) * size;
    };
    parallel_for(ctx.threads, rows, [&](int64_t t) {
        std::memcpy(at(to, t), at(from, t), static_cast<size_t>(n * size));
    });
}

}  // namespace hark
