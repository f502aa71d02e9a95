#include "gpt/train/shard.h"

#include <algorithm>

#include "kernels/runtime/transfer.h"

namespace hark::gpt {

Shard::Shard(const Config& config, Communicator& tensor)
    : tensor_(tensor), whole_(config), own_(config, tensor.size()) {}

template <class Move>
void Shard::each_run(int rank, const Move& move) const {
    for (const ParameterLayout::Entry& part : own_.entries()) {
        const ParameterLayout::Entry& all = whole_.at(part.name);
        if (part.stretches == 0) {
            move(all.offset, part.offset, part.size());
            continue;
        }
        const int64_t piece = part.size() / part.stretches;
        for (int64_t i = 0; i < part.stretches; ++i)
            move(all.offset + (i * tensor_.size() + rank) * piece, part.offset + i * piece, piece);
    }
}

void Shard::fill(Context& ctx, const Tensor& to, const std::vector<Range>& ranges,
                 const std::function<void(Tensor)>& write) const {
    if (tensor_.alone() && ranges.size() == 1 && to.size() == own_.size())
        return fill_from_host(ctx, to, write);
    fill_from_host(ctx, to, [&](Tensor host) {
        const auto view = [](std::vector<float>& of) {
            return Tensor(of.data(), Dtype::f32, {std::ssize(of)});
        };
        std::vector<float> values(static_cast<size_t>(whole_.size()));  // then this rank's
        write(view(values));
        if (!tensor_.alone()) {
            std::vector<float> part(static_cast<size_t>(own_.size()));
            cut(view(part), view(values));
            values.swap(part);
        }
        float* next = host.as<float>();
        for (const Range& range : ranges) {
            const Range there = Range{0, own_.size()}.within(range);
            float* end = std::copy_n(values.data() + there.begin, there.size(), next);
            std::fill_n(end, range.size() - there.size(), 0.0f);
            next += range.size();
        }
    });
}

void Shard::cut(Tensor part, const Tensor& whole) const {
    const float* from = whole.as<float>();
    float* to = part.as<float>();
    each_run(tensor_.rank(), [&](int64_t at_whole, int64_t at_part, int64_t count) {
        std::copy_n(from + at_whole, count, to + at_part);
    });
}

Tensor Shard::gather(Context& ctx, const Tensor& part) const {
    const Tensor own = to_host(ctx, part);
    if (tensor_.alone()) return own;
    Tensor whole;
    if (tensor_.first()) whole = ctx.host_arena.tensor(Dtype::f32, {whole_.size()});
    std::vector<float> sent(static_cast<size_t>(own_.size()));
    for (int rank = 0; rank < tensor_.size(); ++rank) {
        if (rank == tensor_.rank()) std::copy_n(own.as<float>(), sent.size(), sent.begin());
        tensor_.share(std::as_writable_bytes(std::span(sent)), rank);
        if (!whole) continue;
        each_run(rank, [&](int64_t at_whole, int64_t at_part, int64_t count) {
            std::copy_n(sent.data() + at_part, count, whole.as<float>() + at_whole);
        });
    }
    return whole;
}

}  // namespace hark::gpt
