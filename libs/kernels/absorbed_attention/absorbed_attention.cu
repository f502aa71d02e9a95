// absorbed_attention on the GPU: the checks, the scratch and the launches of its three kernels.
#include <cmath>

#include "kernels/absorbed_attention/absorbed_attention.cuh"
#include "kernels/cuda/hopper.cuh"

namespace hark::cuda {
namespace {

// Chooses between kAbsorbedSplit and twice as many keys per split, for a typical number of rows.
// Long splits write, read and add half as many results. Short splits fill the multiprocessors
// better at some numbers of rows.
int split_keys() {
    constexpr int64_t kUsualRows = 128;
    const auto keys_of_a_block = [&](int split) {
        const int64_t splits = kMostAbsorbedSplits * kAbsorbedSplit / split;
        return ceil_div(kUsualRows * splits, multiprocessors()) * split;
    };
    constexpr int kLong = 2 * kAbsorbedSplit;
    return keys_of_a_block(kLong) <= keys_of_a_block(kAbsorbedSplit) ? kLong : kAbsorbedSplit;
}

// Limits of the GPU's kernels.
void check(const Tensor& out, const Tensor& q, const Tensor& encoder_out, const Matrix& kv,
           int64_t heads) {
    constexpr const char* kOp = "absorbed_attention";
    require(can_absorb(q.dtype, kv.values.dtype, encoder_out.dim(2), heads, encoder_out.dim(1)),
            kOp, ": expected q, encoder output and weights that can_absorb() takes, found ", q,
            ", ", encoder_out, ", ", kv.values, " and ", heads, " heads");
    for (const Tensor* tensor : {&out, &q, &encoder_out, &kv.values})
        require(reinterpret_cast<uintptr_t>(tensor->data) % 16 == 0, kOp,
                ": expected tensors aligned to 16 bytes, found ", *tensor, " that is not");
}

}  // namespace

void absorbed_attention(Context& ctx, Tensor out, Tensor q, Tensor encoder_out, const Matrix& kv,
                        Tensor kv_bias, int64_t heads, const BatchLayout& rows, float scale) {
    check(out, q, encoder_out, kv, heads);
    enter(ctx, {&out, &q, &encoder_out, &kv.values, &kv.scales, &kv_bias, &rows.query_start,
                &rows.block_table, &rows.length});
    const int64_t all = q.dim(0), c = encoder_out.dim(2);
    if (all == 0 || rows.sequences() == 0) return;
    AbsorbedArgs args{};
    args.out = out.data;
    args.q = q.data;
    args.encoder_out = encoder_out.data;
    args.kv = kv.values.data;
    args.scales = kv.scales ? kv.scales.as<float>() : nullptr;
    args.bias = kv_bias.as<float>();
    args.query_start = rows.query_start.as<int32_t>();
    args.slot = rows.block_table.as<int32_t>();
    args.length = rows.length.as<int32_t>();
    args.type = q.dtype;
    args.kv_type = kv.values.dtype;
    args.sequences = static_cast<int>(rows.sequences());
    args.slots = static_cast<int>(encoder_out.dim(0));
    args.frames = static_cast<int>(encoder_out.dim(1));
    args.c = static_cast<int>(c);
    args.heads = static_cast<int>(heads);
    args.one_each = rows.max_queries == 1 && rows.sequences() == all;
    args.kv_ready = rows.kv_ready;
    args.split_keys = split_keys();
    args.splits =
        static_cast<int>(std::max<int64_t>(1, ceil_div(rows.max_length, args.split_keys)));
    args.scale_log2 = scale * static_cast<float>(M_LOG2E);

    const Arena::Scope scope(ctx.arena);
    const int64_t most = std::min(all, kMostAbsorbedRows);
    const auto scratch = [&](int64_t bytes) {
        return ctx.arena.tensor(Dtype::u8, {most, bytes}).data;
    };
    args.absorbed = static_cast<uint2*>(scratch(c / 16 * args.head_tiles() * 256));
    args.parts = static_cast<uint2*>(scratch(args.splits * heads * c * 2));
    args.row_max_sum = static_cast<float2*>(scratch(args.splits * heads * 8));
    for (int64_t first = 0; first < all; first += most) {
        args.first_row = static_cast<int>(first);
        args.rows = static_cast<int>(std::min(most, all - first));
        absorb_queries(ctx, args);
        attend_absorbed(ctx, args);
        expand_values(ctx, args);
    }
}

}  // namespace hark::cuda
