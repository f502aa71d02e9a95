#include "audio/mel_stream.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/error.h"
#include "core/profile/profile.h"

namespace hark {
namespace {

constexpr int kFramesPerSecond = 100;
constexpr int kReach = 2;  // frames after a sample's own hop whose windows cover it

// Appends the tensors of `from`, of any type, to those of `to`.
void pass_tensors(const Document& from, int64_t start, Document& to) {
    for (TensorEntry entry : from.header.tensors) {
        const std::byte* bytes = from.data->data();
        to.data->insert(to.data->end(), bytes + entry.begin, bytes + entry.end);
        // One mel document may take tensors of two audio documents.
        if (to.find(entry.name)) entry.name = concat(entry.name, "@", start);
        entry.end = to.header.data_bytes + (entry.end - entry.begin);
        entry.begin = std::exchange(to.header.data_bytes, entry.end);
        to.header.tensors.push_back(std::move(entry));
    }
}

}  // namespace

void MelOptions::flags(Flags& flags) {
    flags.section("Output");
    flags
        .add("mels", mels, {"80", "128"},
             "N mel bands: 128 for large-v3 and turbo, 80 for all others")
        .essential();
    flags
        .add_switch("normalize", normalize,
                    "normalise each recording as Whisper does, in one document")
        .details("Without it whisper-transcribe normalises them.");
    chunk.flags(flags);
}

MelStream::MelStream(const MelOptions& options, Context* ctx)
    : compute_(std::make_shared<const MelFrames>(std::stoi(options.mels), ctx)),
      n_mels_(compute_->n_mels()),
      normalize_(options.normalize),
      chunk_frames_(options.normalize ? std::numeric_limits<int64_t>::max()
                                      : options.chunk.length(kFramesPerSecond)) {}

void MelStream::push(const Chunk& audio, const Emit& emit) {
    const ProfileSpan span("mel");
    if (audio.start == 0) span.follow(audio.source, audio.channel);
    std::optional<std::vector<Region>> speech = speech_of(audio.document);
    const auto found = open_.try_emplace(audio.recording, compute_).first;
    Recording& recording = found->second;
    recording.like.kind = "mel";
    recording.like.recording = audio.recording;
    recording.like.channel = audio.channel;
    recording.like.source = audio.source;

    Document rest = audio.document;
    std::erase_if(rest.header.tensors,
                  [](const TensorEntry& t) { return t.name == "samples" || t.name == "speech"; });
    if (rest.header.tensors.empty()) rest.data.reset();
    recording.extras.push_back({content_frames(audio.start),
                                content_frames(audio.start + audio.length()) + kReach,
                                std::move(rest), std::move(speech)});
    const Tensor samples = audio.values();
    recording.log_mel.push({samples.as<float>(), static_cast<size_t>(samples.size())},
                           recording.frames);
    // A chunk waits for a frame after it, so that the last one is never empty.
    while (complete(recording) > chunk_frames_) emit(take(recording, chunk_frames_, false));
    recording.frames.erase(recording.frames.begin(),
                           recording.frames.begin() + static_cast<ptrdiff_t>(recording.taken));
    recording.taken = 0;
    if (!audio.last) return;
    finish(recording, audio.error, audio.lacks_end, emit);
    open_.erase(found);
}

int64_t MelStream::complete(const Recording& recording) const {
    return static_cast<int64_t>(recording.frames.size() - recording.taken) / n_mels_;
}

void MelStream::abandon(const std::string& error, const Emit& emit) {
    for (auto& [id, recording] : open_) finish(recording, error, false, emit);
    open_.clear();
}

void MelStream::finish(Recording& recording, const std::string& error, bool lacks_end,
                       const Emit& emit) {
    recording.log_mel.finish(recording.frames);
    if (normalize_) normalize_log_mel(recording.frames);
    for (;;) {
        const int64_t left = complete(recording);
        const bool last = left <= chunk_frames_;
        Chunk chunk = take(recording, std::min(left, chunk_frames_), last);
        if (last) chunk.error = error;
        chunk.lacks_end = last && lacks_end;
        emit(std::move(chunk));
        if (last) return;
    }
}

// The next frames as a chunk (n_mels, frames).
Chunk MelStream::take(Recording& recording, int64_t frames, bool last) {
    const size_t n_mels = static_cast<size_t>(n_mels_), count = static_cast<size_t>(frames);
    std::vector<float> rows(n_mels * count);
    const float* from = recording.frames.data() + recording.taken;
    constexpr size_t kTile = 16;  // mels, a cache line of what is read
    for (size_t first = 0; first < n_mels; first += kTile)
        for (size_t frame = 0; frame < count; ++frame)
            for (size_t mel = first; mel < first + kTile; ++mel)
                rows[mel * count + frame] = from[frame * n_mels + mel];
    recording.taken += rows.size();
    Chunk chunk = recording.like;
    chunk.start = recording.emitted;
    chunk.last = last;
    recording.emitted += frames;
    chunk.document.add("log_mel", Tensor(rows.data(), Dtype::f32, {n_mels_, frames}));
    std::deque<Extra>& extras = recording.extras;
    std::optional<std::vector<Region>> speech;
    for (Extra& extra : extras) {
        if (!last && extra.begin >= recording.emitted) break;
        for (const auto& [key, value] : extra.document.header.metadata)
            chunk.document.header.metadata[key] = value;
        pass_tensors(extra.document, extra.begin, chunk.document);
        extra.document.header.tensors.clear();
        extra.document.data.reset();
        if (!extra.speech) continue;
        if (!speech) speech.emplace();
        speech->insert(speech->end(), extra.speech->begin(), extra.speech->end());
        extra.speech.reset();
    }
    if (speech) add_speech(chunk.document, *speech);
    while (!extras.empty() && extras.front().end <= recording.emitted) extras.pop_front();
    if (normalize_) chunk.document.header.metadata["normalized"] = "true";
    if (last)
        chunk.document.header.metadata["content_frames"] =
            std::to_string(content_frames(recording.log_mel.samples()));
    return chunk;
}

}  // namespace hark
