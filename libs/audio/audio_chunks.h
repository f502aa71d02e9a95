// One input as the chunks of an audio stream.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "audio/decoder.h"
#include "audio/resampler.h"
#include "core/cli/cli.h"
#include "formats/recordings.h"

namespace hark {

// The flags that say how a stream is cut into documents.
struct ChunkOptions {
    double seconds = 30;  // of each document; 0 for one document a recording

    void flags(Flags& flags);
    void check() const;  // throws UsageError unless seconds is a multiple of 0.01
    // Samples or frames of each document, at `per_second`; the largest number for 0 seconds.
    int64_t length(int64_t per_second) const;
};

// The flags that say which part of an input is read, and what happens if it is incomplete or has no
// end.
struct ReadOptions {
    double start = 0;                // seconds
    std::optional<double> duration;  // seconds
    int64_t track = 0;               // among the audio tracks, from 0
    bool split_channels = false;     // makes a recording of each channel
    bool allow_truncated = false;    // makes a loss a warning instead of an error
    std::optional<double> max_hours = 100;  // a longer recording ends there with an error

    void flags(Flags& flags);
    void trust_flags(Flags& flags);  // --allow-truncated and --max-hours alone
};

// Reads an input as chunks of `chunk_samples` at 16 kHz. With split_channels the chunks of the
// channels alternate, so that memory does not grow with the recording.
class AudioChunks {
  public:
    using Open = std::function<std::unique_ptr<Decoder>(Input&)>;

    // Opens the input at the first next(). `id` is the recording's, or ID.CHANNEL each channel's
    // with split_channels. `open` opens it; without it, the first bytes choose the decoder.
    AudioChunks(std::string path, std::string id, const ReadOptions& options, int64_t chunk_samples,
                Open open = nullptr);
    // The same for an open input.
    AudioChunks(std::unique_ptr<Input> input, std::string id, const ReadOptions& options,
                int64_t chunk_samples, Open open = nullptr);

    // The next chunk, or nullopt after the last. Does not throw if the input cannot be opened,
    // breaks or lacks a part: the last chunk of each of its recordings then carries the error or
    // warning.
    std::optional<Chunk> next();

  private:
    void advance();
    void decode();
    void resample(bool more, Channels& fresh);
    void take_part(Channels& fresh);
    void check_whole();
    void end();
    void cut(Channels& fresh);
    void emit(size_t channel, size_t samples, bool last);

    std::string path_, id_;
    ReadOptions options_;
    int64_t chunk_samples_;
    Open open_;

    std::unique_ptr<Input> input_;  // outlives the decoder
    std::unique_ptr<Decoder> decoder_;
    std::unique_ptr<Resampler> resampler_;
    AudioBlock block_;
    Channels samples_ = Channels(1);  // not yet in a chunk
    int64_t skip_, left_;             // samples before the wanted part, and of it
    int64_t most_;                    // samples that may be decoded
    int64_t done_ = 0;                // decoded samples of the wanted part
    int64_t decoded_ = 0;             // all decoded samples
    int64_t produced_ = 0;            // samples of the resampler
    int64_t emitted_ = 0;             // samples in chunks, the same for every channel
    std::deque<Chunk> ready_;
    std::string error_, warning_;
    bool lacks_end_ = false;  // with an error
    bool ended_ = false;
};

}  // namespace hark
