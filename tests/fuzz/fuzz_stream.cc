// Tensor streams as mel and whisper-transcribe read them, up to the windows of a recording.
#include <algorithm>

#include "core/error.h"
#include "formats/recordings.h"
#include "fuzz/memory_file.h"
#include "fuzz/target.h"
#include "whisper/model/config.h"
#include "whisper/transcribe/mel_recording.h"

namespace {

std::string document(const std::string& kind, const std::string& recording, int64_t start,
                     bool last, int64_t frames, int64_t regions = 0) {
    const bool mel = kind == "mel";
    const uint64_t bytes = static_cast<uint64_t>(frames) * (mel ? 320 : 4);
    hark::SafetensorsHeader header;
    header.metadata = {
        {"hark", "1"},       {"kind", kind},           {"recording", recording},
        {"source", "a.wav"}, {"sample_rate", "16000"}, {"start", std::to_string(start)}};
    if (last) header.metadata["last"] = "true";
    if (last && mel) header.metadata["content_frames"] = std::to_string(start + frames);
    hark::TensorEntry entry{mel ? "log_mel" : "samples", "F32", {frames}, 0, bytes};
    if (mel) entry.shape = {80, frames};
    header.tensors.push_back(entry);
    std::string speech;
    for (char i = 1; i <= 2 * regions; ++i) speech += i + std::string(7, '\0');
    if (regions > 0)
        header.tensors.push_back({"speech", "I64", {regions, 2}, bytes, bytes + speech.size()});
    return hark::format_safetensors_header(header) + std::string(bytes, '\xbf') + speech;
}

// As a stage writes it that has found the same regions of speech.
void write_again(hark::Chunk chunk) {
    const auto regions = hark::speech_of(chunk.document);
    if (regions) hark::add_speech(chunk.document, *regions);
    const hark::fuzz::MemoryFile file(nullptr, 0);
    hark::ByteWriter out(file.fd(), "fuzz");
    hark::write_chunk(out, std::move(chunk));
    out.flush();
}

void read_all(const std::string& kind, const uint8_t* data, size_t size) {
    const hark::fuzz::MemoryFile input(data, size);
    try {
        hark::ByteReader in(input.fd(), "stdin");
        hark::RecordingReader reader(in, kind, "");
        hark::whisper::MelRecording mel;
        std::vector<float> window(hark::whisper::kWindowFrames * 80);
        while (auto chunk = reader.next()) {
            write_again(*chunk);
            if (kind != "mel") continue;
            if (chunk->start == 0) mel = {};
            mel.add(*chunk, 80);
            if (!chunk->last) continue;
            mel.detection_window(0, window);
            mel.window(0, std::min(mel.content_frames(), hark::whisper::kWindowFrames), window);
        }
    } catch (const hark::Error&) {
    }
}

}  // namespace

static std::vector<std::string> stream_seeds() {
    return {document("mel", "0", 0, false, 3) + document("mel", "0", 3, true, 2),
            document("mel", "0", 0, true, 0), document("audio", "0", 0, true, 5, 3),
            document("audio", "0", 0, false, 5) + document("audio", "1", 0, true, 5) +
                document("audio", "0", 5, true, 0)};
}

static int stream_input(const uint8_t* data, size_t size) {
    read_all("mel", data, size);
    read_all("audio", data, size);
    return 0;
}

// Blocks of sound have a fixed size.
static const hark::fuzz::Target kStream{"stream", stream_seeds, stream_input, int64_t{4} << 20};
