#include "audio/audio_chunks.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "audio/resampled_part.h"
#include "core/error.h"
#include "core/profile/profile.h"

namespace hark {
namespace {

constexpr int64_t kEndless = std::numeric_limits<int64_t>::max();

int64_t in_samples(double seconds) { return std::llround(seconds * kSampleRate); }

}  // namespace

void ChunkOptions::flags(Flags& flags) {
    flags
        .add("chunk", seconds, "SECONDS of sound per document; 0 = one document per recording", 0,
             86400)
        .details("A multiple of 0.01. The next stage gets a document as soon as it is complete.");
}

void ChunkOptions::check() const {
    require_usage(std::abs(seconds * 100 - std::round(seconds * 100)) < 1e-6,
                  "--chunk: not a multiple of 0.01 s (got ", seconds, ")");
}

int64_t ChunkOptions::length(int64_t per_second) const {
    if (seconds == 0) return kEndless;
    return std::llround(seconds * 100) * (per_second / 100);
}

void ReadOptions::flags(Flags& flags) {
    flags.section("Input");
    flags.add("start", start, "SECONDS into each file at which to begin", 0, 1e7).essential();
    flags.add("duration", duration, "SECONDS to decode from there; without it, all", 0, 1e7)
        .essential();
    flags.add("track", track, "N audio track of a file with several, counted from 0", 0, 1000)
        .essential();
    flags
        .add_switch("split-channels", split_channels,
                    "write each channel as a recording instead of mixing them")
        .essential();
    trust_flags(flags);
}

void ReadOptions::trust_flags(Flags& flags) {
    flags
        .add_switch("allow-truncated", allow_truncated,
                    "only warn if a part of a recording is missing")
        .essential()
        .details(
            "The length that a file states, and its timestamps, are compared with what was "
            "decoded. "
            "If more than 0.1 s is missing, the recording is named and the exit status is 1. What "
            "was decoded is written in both cases.");
    flags.add("max-hours", max_hours, "HOURS that a recording may last; none = no limit", 0, 1e6)
        .details(
            "A file of a few kilobytes can state weeks of silence. What is decoded until then is "
            "written, then the recording ends with an error.");
}

AudioChunks::AudioChunks(std::string path, std::string id, const ReadOptions& options,
                         int64_t chunk_samples, Open open)
    : path_(std::move(path)),
      id_(std::move(id)),
      options_(options),
      chunk_samples_(chunk_samples),
      open_(std::move(open)),
      skip_(in_samples(options.start)),
      left_(options.duration ? in_samples(*options.duration) : kEndless),
      most_(options.max_hours ? in_samples(*options.max_hours * 3600) : kEndless) {
    if (!open_)
        open_ = [track = static_cast<int>(options.track)](Input& input) {
            return open_decoder(input, track);
        };
}

AudioChunks::AudioChunks(std::unique_ptr<Input> input, std::string id, const ReadOptions& options,
                         int64_t chunk_samples, Open open)
    : AudioChunks(input->name(), std::move(id), options, chunk_samples, std::move(open)) {
    input_ = std::move(input);
}

std::optional<Chunk> AudioChunks::next() {
    const ProfileSpan span("decode");
    while (ready_.empty() && !ended_) advance();
    if (ready_.empty()) return std::nullopt;
    Chunk chunk = std::move(ready_.front());
    ready_.pop_front();
    if (chunk.start == 0) span.follow(chunk.source, chunk.channel);
    return chunk;
}

void AudioChunks::advance() {
    try {
        if (!decoder_) {
            if (!input_) input_ = std::make_unique<Input>(path_);
            decoder_ = open_(*input_);
        }
        decode();
    } catch (const std::exception& failure) {
        error_ = failure_text(failure);
        ended_ = true;
    }
    if (ended_) end();
}

// Decodes one block. Skipped parts are decoded too: in half of the formats a seek is not exact, and
// decoding is hundreds of times faster than real time.
void AudioChunks::decode() {
    Channels fresh(samples_.size());
    const bool more = left_ > 0 && decoder_->next(block_);
    try {
        if (more && block_.part)
            take_part(fresh);
        else
            resample(more, fresh);
    } catch (const Error& failure) {
        cut(fresh);
        fail(input_->name(), ": at ", static_cast<double>(decoded_) / kSampleRate,
             " s: ", failure.what());
    }
    cut(fresh);
    require(decoded_ <= most_, input_->name(), ": longer than ", options_.max_hours.value_or(0),
            " h; if that is no mistake, use --max-hours");
    ended_ = !more;
    if (ended_) check_whole();
}

// Resamples the block, or what is left at the end.
void AudioChunks::resample(bool more, Channels& fresh) {
    const bool changes = more && resampler_ && !resampler_->takes(block_);
    if (resampler_ && (changes || (!more && left_ > 0))) {
        resampler_->finish(fresh);
        resampler_.reset();
    }
    if (!more) return;
    const int64_t had = std::ssize(fresh[0]);
    if (!resampler_) {
        resampler_ = std::make_unique<Resampler>(block_, options_.split_channels);
        const size_t channels = static_cast<size_t>(resampler_->channels());
        require(channels == fresh.size() || done_ + emitted_ == 0,
                "the number of channels changes from ", fresh.size(), " to ", channels);
        fresh.resize(channels);
        samples_.resize(channels);
        produced_ = 0;
    }
    resampler_->push(block_, fresh);
    produced_ += std::ssize(fresh[0]) - had;
}

void AudioChunks::take_part(Channels& fresh) {
    ResampledPart& part = static_cast<ResampledPart&>(*block_.part);
    part.take(produced_, most_ - decoded_, fresh);
    produced_ += std::ssize(fresh[0]);
    resampler_ = part.take_resampler();
}

void AudioChunks::check_whole() {
    const Loss loss = decoder_->loss();
    if (!loss.text.empty()) {
        const std::string message = concat(input_->name(), ": ", loss.text);
        lacks_end_ = loss.is_end && !options_.allow_truncated;
        require(options_.allow_truncated, message);
        warning_ = message;
    }
    require(skip_ == 0, input_->name(), ": --start is after its end (got ", options_.start,
            " s, the recording has ",
            static_cast<double>(in_samples(options_.start) - skip_) / kSampleRate, " s)");
}

// Keeps the wanted part of the fresh samples, and emits the chunks that are full. A full chunk is
// emitted after the next sample has come, so that the last chunk is not empty.
void AudioChunks::cut(Channels& fresh) {
    const int64_t count = static_cast<int64_t>(fresh[0].size());
    const int64_t from = std::min(skip_, count), taken = std::min(left_, count - from);
    skip_ -= from;
    done_ += taken;
    decoded_ += count;
    if (left_ != kEndless) left_ -= taken;
    for (size_t c = 0; c < fresh.size(); ++c)
        samples_[c].insert(samples_[c].end(), fresh[c].begin() + from,
                           fresh[c].begin() + from + taken);
    while (static_cast<int64_t>(samples_[0].size()) > chunk_samples_) {
        for (size_t c = 0; c < samples_.size(); ++c)
            emit(c, static_cast<size_t>(chunk_samples_), false);
        emitted_ += chunk_samples_;
    }
}

void AudioChunks::end() {
    for (size_t c = 0; c < samples_.size(); ++c) emit(c, samples_[c].size(), true);
    decoder_.reset();
    input_.reset();
}

void AudioChunks::emit(size_t channel, size_t samples, bool last) {
    std::vector<float>& from = samples_[channel];
    Chunk chunk;
    chunk.kind = "audio";
    chunk.channel = std::to_string(channel);
    chunk.recording = options_.split_channels ? id_ + "." + chunk.channel : id_;
    chunk.source = path_ == "-" ? "stdin" : path_;
    chunk.start = emitted_;
    chunk.last = last;
    if (last) chunk.error = error_;
    chunk.lacks_end = last && lacks_end_;
    if (last) chunk.warning = warning_;
    chunk.document.add("samples", Tensor(from.data(), Dtype::f32, {static_cast<int64_t>(samples)}));
    from.erase(from.begin(), from.begin() + static_cast<ptrdiff_t>(samples));
    ready_.push_back(std::move(chunk));
}

}  // namespace hark
