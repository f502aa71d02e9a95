#include "kernels/checks.h"
#include "kernels/linear/product.h"
#include "kernels/ops_table.h"

namespace hark {
namespace {

constexpr const char* kHeadLinear = "head_linear";

// Checks that each of the heads' parts of a row, equally wide, has the n columns.
void check_head_parts(const char* name, const Columns& columns, int64_t heads, int64_t n) {
    const Tensor& rows = columns.rows;
    require(rows.rank == 2 && is_float(rows.dtype) && rows && rows.dim(1) % heads == 0 &&
                columns.first >= 0 && columns.first + n <= rows.dim(1) / heads,
            kHeadLinear, ": expected ", name, " f32, f16 or bf16 (T, ", heads, " heads of ",
            columns.first + n, " channels or more), found ", rows);
}

void check_head_linear(const Columns& y, const Columns& x, const std::vector<Matrix>& w) {
    check_matrices(kHeadLinear, "heads", w);
    const Tensor& first = w.front().values;
    check_head_parts("y", y, std::ssize(w), first.dim(0));
    check_head_parts("x", x, std::ssize(w), first.dim(1));
    require(y.rows.dim(0) == x.rows.dim(0) && y.rows.dtype == x.rows.dtype, kHeadLinear,
            ": expected y with the rows of x in its type, found ", y.rows, " and ", x.rows);
}

}  // namespace

void head_linear(Context& ctx, const Columns& y, const Columns& x, const std::vector<Matrix>& w) {
    check_head_linear(y, x, w);
    if (ctx.on_cuda()) return cuda_ops().head_linear(ctx, y, x, w);
    const Arena::Scope scope(ctx.arena);
    const int64_t rows = x.rows.dim(0), heads = std::ssize(w);
    const int64_t n = w.front().values.dim(0), k = w.front().values.dim(1);
    // One row of a head is in one piece, several are gathered.
    float* from = ctx.arena.tensor(Dtype::f32, {rows, k}).as<float>();
    float* to = ctx.arena.tensor(Dtype::f32, {rows, n}).as<float>();
    for (int64_t h = 0; h < heads; ++h) {
        const auto part = [&](const Columns& of, int64_t t) {
            return of.rows.as<float>() + (t * heads + h) * (of.rows.dim(1) / heads) + of.first;
        };
        const Matrix& matrix = w[static_cast<size_t>(h)];
        if (rows == 1) {
            cpu_product(ctx, part(y, 0), part(x, 0), 1, matrix, {});
            continue;
        }
        for (int64_t t = 0; t < rows; ++t) std::copy_n(part(x, t), k, from + t * k);
        cpu_product(ctx, to, from, rows, matrix, {});
        for (int64_t t = 0; t < rows; ++t) std::copy_n(to + t * n, n, part(y, t));
    }
}

}  // namespace hark
