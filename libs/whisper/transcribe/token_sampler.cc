#include "whisper/transcribe/token_sampler.h"

#include "kernels/runtime/cuda_library.h"

namespace hark::whisper {
namespace {

const CudaTokenSampler& cuda_sampler() {
    static const auto* table =
        reinterpret_cast<const CudaTokenSampler* (*)()>(cuda_symbol("hark_cuda_token_sampler"))();
    return *table;
}

}  // namespace

SampleRequest sample_request(const LogitConstraints& constraints, std::span<const int32_t> sampled,
                             int32_t n_vocab) {
    const TimestampMask mask = timestamp_mask(constraints, sampled, n_vocab);
    SampleRequest request;
    request.first = sampled.empty();
    request.text_end = mask.text_end;
    request.timestamp_end = mask.timestamp_end;
    request.timestamp_last = mask.timestamp_last;
    return request;
}

TokenSampler::TokenSampler(const Context& ctx, const LogitConstraints& constraints, int64_t n_vocab)
    : memory_(ctx.arena.source()) {
    std::vector<uint8_t> masked(static_cast<size_t>(n_vocab));
    for (const int32_t id : constraints.blank) masked[static_cast<size_t>(id)] |= 2;
    for (const int32_t id : constraints.suppressed) masked[static_cast<size_t>(id)] |= 1;
    if (constraints.timestamps) masked[static_cast<size_t>(constraints.no_timestamps)] |= 1;
    const Tensor table = memory_.tensor(Dtype::u8, {n_vocab});
    memory_.source().write(table.data, masked.data(), masked.size());
    constraints_ = {table.as<uint8_t>(), static_cast<int32_t>(n_vocab), constraints.timestamp_begin,
                    constraints.timestamps, constraints.eot};
}

void TokenSampler::operator()(Context& ctx, Candidate* best, int64_t k, const Tensor& logits,
                              const SampleRequest* requests, const NextStep& next) const {
    cuda_sampler().sample(ctx, best, k, logits.as<float>(), requests, logits.dim(0), constraints_,
                          next);
}

}  // namespace hark::whisper
