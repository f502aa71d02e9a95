#include "whisper/transcribe/choose.h"

#include "kernels/runtime/cuda_library.h"

namespace hark::whisper {
namespace {

const CudaChoose& cuda_choose() {
    static const auto* table =
        reinterpret_cast<const CudaChoose* (*)()>(cuda_symbol("hark_cuda_choose"))();
    return *table;
}

}  // namespace

RowChoice row_choice(const Rules& rules, std::span<const int32_t> sampled, int32_t n_vocab) {
    const Forbidden forbidden = forbidden_by_timestamps(rules, sampled, n_vocab);
    RowChoice choice;
    choice.first = sampled.empty();
    choice.text_end = forbidden.text_end;
    choice.stamp_end = forbidden.timestamp_end;
    choice.stamp_last = forbidden.timestamp_last;
    return choice;
}

Chooser::Chooser(const Context& ctx, const Rules& rules, int64_t n_vocab)
    : memory_(ctx.arena.source()) {
    std::vector<uint8_t> forbidden(static_cast<size_t>(n_vocab));
    for (const int32_t id : rules.blank) forbidden[static_cast<size_t>(id)] |= 2;
    for (const int32_t id : rules.suppressed) forbidden[static_cast<size_t>(id)] |= 1;
    if (rules.timestamps) forbidden[static_cast<size_t>(rules.no_timestamps)] |= 1;
    const Tensor table = memory_.tensor(Dtype::u8, {n_vocab});
    memory_.source().write(table.data, forbidden.data(), forbidden.size());
    rules_ = {table.as<uint8_t>(), static_cast<int32_t>(n_vocab), rules.timestamp_begin,
              rules.timestamps};
}

void Chooser::operator()(Context& ctx, Candidate* best, int64_t k, const Tensor& logits,
                         const RowChoice* rows) const {
    cuda_choose().choose(ctx, best, k, logits.as<float>(), rows, logits.dim(0), rules_);
}

}  // namespace hark::whisper
