#include "gpt/train/shard.h"

#include <algorithm>

#include "kernels/runtime/transfer.h"

namespace hark::gpt {

Shard::Shard(const DecoderConfig& config, Communicator& tensor)
    : tensor_(tensor), full_(config), local_(config, tensor.size()) {}

template <class Move>
void Shard::each_run(int rank, const Move& move) const {
    for (const ParameterLayout::Entry& part : local_.entries()) {
        const ParameterLayout::Entry& all = full_.at(part.name);
        if (part.tp_chunks == 0) {
            move(all.offset, part.offset, part.size());
            continue;
        }
        const int64_t piece = part.size() / part.tp_chunks;
        for (int64_t i = 0; i < part.tp_chunks; ++i)
            move(all.offset + (i * tensor_.size() + rank) * piece, part.offset + i * piece, piece);
    }
}

void Shard::fill(Context& ctx, const Tensor& to, const std::vector<Range>& ranges,
                 const std::function<void(Tensor)>& write) const {
    if (tensor_.alone() && ranges.size() == 1 && to.size() == local_.size())
        return fill_from_host(ctx, to, write);
    fill_from_host(ctx, to, [&](Tensor host) {
        const auto view = [](std::vector<float>& of) {
            return Tensor(of.data(), Dtype::f32, {std::ssize(of)});
        };
        std::vector<float> values(static_cast<size_t>(full_.size()));  // then this rank's
        write(view(values));
        if (!tensor_.alone()) {
            std::vector<float> part(static_cast<size_t>(local_.size()));
            slice(view(part), view(values));
            values.swap(part);
        }
        float* next = host.as<float>();
        for (const Range& range : ranges) {
            const Range there = Range{0, local_.size()}.within(range);
            float* end = std::copy_n(values.data() + there.begin, there.size(), next);
            std::fill_n(end, range.size() - there.size(), 0.0f);
            next += range.size();
        }
    });
}

void Shard::slice(Tensor part, const Tensor& full) const {
    const float* from = full.as<float>();
    float* to = part.as<float>();
    each_run(tensor_.rank(), [&](int64_t at_full, int64_t at_local, int64_t count) {
        std::copy_n(from + at_full, count, to + at_local);
    });
}

Tensor Shard::gather(Context& ctx, const Tensor& part) const {
    const Tensor local = to_host(ctx, part);
    if (tensor_.alone()) return local;
    Tensor full;
    if (tensor_.first()) full = ctx.host_arena.tensor(Dtype::f32, {full_.size()});
    std::vector<float> sent(static_cast<size_t>(local_.size()));
    for (int rank = 0; rank < tensor_.size(); ++rank) {
        if (rank == tensor_.rank()) std::copy_n(local.as<float>(), sent.size(), sent.begin());
        tensor_.share(std::as_writable_bytes(std::span(sent)), rank);
        if (!full) continue;
        each_run(rank, [&](int64_t at_full, int64_t at_local, int64_t count) {
            std::copy_n(sent.data() + at_local, count, full.as<float>() + at_full);
        });
    }
    return full;
}

}  // namespace hark::gpt
