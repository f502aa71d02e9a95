#include "audio/pcm_mel.h"

#include <utility>

#include "audio/pcm.h"
#include "core/error.h"

namespace hark {

PcmMel::PcmMel(int rate, std::string source, const MelOptions& options)
    : source_(std::move(source)),
      block_{.rate = rate, .channels = 1, .layout = 0, .samples = {}},
      resampler_(block_, false),
      mel_(options) {}

void PcmMel::push(std::string_view bytes, const MelStream::Emit& emit) {
    held_ += bytes;
    const size_t size = pcm_bytes(PcmFormat::s16), count = held_.size() / size;
    if (count == 0) return;
    has_any_ = true;
    block_.samples.clear();
    append_pcm(PcmFormat::s16, reinterpret_cast<const unsigned char*>(held_.data()), count,
               block_.samples);
    held_.erase(0, count * size);
    resampler_.push(block_, samples_);
    if (!samples_[0].empty()) push_samples(false, "", emit);
}

void PcmMel::finish(const MelStream::Emit& emit) {
    if (!has_any_) return;
    resampler_.finish(samples_);
    const size_t size = pcm_bytes(PcmFormat::s16);
    push_samples(true,
                 held_.empty() ? ""
                               : concat(source_, ": ends inside a sample (got ", held_.size(),
                                        " of ", size, " bytes)"),
                 emit);
}

void PcmMel::push_samples(bool is_last, const std::string& error, const MelStream::Emit& emit) {
    std::vector<float>& samples = samples_[0];
    Chunk chunk;
    chunk.kind = "audio";
    chunk.recording = "1";
    chunk.source = source_;
    chunk.start = std::exchange(pushed_, pushed_ + std::ssize(samples));
    chunk.last = is_last;
    chunk.error = error;
    chunk.document.add("samples", Tensor(samples.data(), Dtype::f32, {std::ssize(samples)}));
    samples.clear();
    mel_.push(chunk, emit);
}

}  // namespace hark
