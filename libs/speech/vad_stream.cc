#include "speech/vad_stream.h"

#include <algorithm>

namespace hark {

void MelDetector::push(std::span<const float> samples, std::vector<float>& probabilities) {
    std::vector<float> frames;
    while (!samples.empty()) {  // one second at a time: a long document has many frames
        const auto piece = samples.first(std::min<size_t>(samples.size(), kSampleRate));
        samples = samples.subspan(piece.size());
        log_mel_.push(piece, frames);
        detector_.push(frames, probabilities);
        frames.clear();
    }
}

void MelDetector::finish(std::vector<float>& probabilities) {
    std::vector<float> frames;
    log_mel_.finish(frames);
    detector_.push(frames, probabilities);
    detector_.finish(probabilities);
}

VadStream::VadStream(const RegionOptions& options, const std::shared_ptr<const SileroModel>& silero)
    : finder_(options, silero ? SileroModel::kStep : Detector::kStep) {
    if (silero) detector_.emplace<Silero>(silero);
}

void VadStream::add_regions(Chunk& chunk) {
    const Tensor samples = chunk.values();
    const std::span<const float> values{samples.as<float>(), static_cast<size_t>(samples.size())};
    std::vector<float> probabilities;
    std::vector<Region> regions;
    std::visit(
        [&](auto& detector) {
            detector.push(values, probabilities);
            if (chunk.last) detector.finish(probabilities);
        },
        detector_);
    finder_.push(probabilities, regions);
    if (chunk.last) finder_.finish(chunk.start + samples.size(), regions);
    add_speech(chunk.document, regions);
    chunk.document.header.metadata["speech_detector"] =
        std::holds_alternative<Silero>(detector_) ? "silero" : "spectral";
    next_ = chunk;
    next_.start += samples.size();
    next_.document = {};
}

Chunk VadStream::end_with(const std::string& error) {
    Chunk chunk = next_;
    chunk.document.add("samples", Tensor(nullptr, Dtype::f32, {0}));
    chunk.last = true;
    chunk.error = error;
    add_regions(chunk);
    return chunk;
}

}  // namespace hark
