// Shared by the whisper tests: the golden files, the demo model, recordings as mel.
#pragma once

#include <string>
#include <vector>

#include "audio/log_mel.h"
#include "core/json/json.h"
#include "support/golden.h"
#include "support/process.h"
#include "support/recordings.h"
#include "whisper/transcribe/transcribe.h"

namespace hark::test {

// The samples of a golden file's recording; throws if their checksum differs.
inline std::vector<float> samples_of(const nlohmann::json& entry) {
    const std::vector<int16_t> samples =
        recording_samples(entry.at("kind").get<std::string>(), entry.at("seed").get<uint64_t>(),
                          entry.at("seconds").get<double>(), samples_dir());
    char hex[20];
    std::snprintf(hex, sizeof hex, "%016llx", static_cast<unsigned long long>(checksum(samples)));
    if (hex != entry.at("checksum").get<std::string>())
        throw std::runtime_error("the recording's samples differ from the golden file's");
    return as_float(samples);
}

// The samples' whole mel as one chunk of a stream.
inline Chunk mel_chunk(const std::vector<float>& samples, int n_mels) {
    LogMel log_mel(n_mels);
    std::vector<float> by_frame;
    log_mel.push(samples, by_frame);
    log_mel.finish(by_frame);
    const int64_t frames = static_cast<int64_t>(by_frame.size()) / n_mels;
    std::vector<float> by_mel(by_frame.size());
    for (int64_t t = 0; t < frames; ++t)
        for (int64_t m = 0; m < n_mels; ++m) by_mel[m * frames + t] = by_frame[t * n_mels + m];
    Chunk chunk;
    chunk.kind = "mel";
    chunk.recording = "0";
    chunk.source = "test";
    chunk.last = true;
    chunk.document.where = "test: document 1";
    chunk.document.header.metadata["content_frames"] = std::to_string(samples.size() / 160);
    chunk.document.add("log_mel", Tensor(by_mel.data(), Dtype::f32, {n_mels, frames}));
    return chunk;
}

inline whisper::MelRecording mel_of(const std::vector<float>& samples, int n_mels = 80) {
    whisper::MelRecording mel;
    mel.add(mel_chunk(samples, n_mels), n_mels);
    return mel;
}

// A model's text of one recording.
inline std::string text_of(Context& ctx, const whisper::Model& model,
                           const whisper::Tokenizer& tokenizer,
                           const whisper::TranscribeOptions& options,
                           const whisper::MelRecording& mel) {
    std::string text;
    whisper::Transcriber::Listener listener;
    listener.end = [&](const whisper::Transcription& recording) { text = recording.text(); };
    whisper::Transcriber transcriber(ctx, model, tokenizer, options, listener);
    transcriber.add({"test"}, "", mel);
    while (!transcriber.idle()) transcriber.advance();
    return text;
}

}  // namespace hark::test
