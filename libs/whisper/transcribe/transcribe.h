// Transcribes recordings from log-mel spectrograms to segments, several at once. Each is decoded as
// openai/whisper transcribe.py does.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "whisper/transcribe/decoding.h"
#include "whisper/transcribe/transcribe_options.h"
#include "whisper/transcribe/transcription.h"

namespace hark::whisper {

// One decoding of a window, and why it was rejected, if it was.
struct Attempt {
    int64_t seek = 0;
    DecodingResult result;
    Rejection rejection = Rejection::none;
};

// Advice for a GPU out of memory with `windows` windows: a batch of `most`, unless that changes
// cross_kv_mode(), since fewer windows may then take more memory each.
std::string memory_advice(int64_t windows, int64_t most);

class Transcriber {
  public:
    // Callbacks, recording by recording in the order of add().
    struct Listener {
        std::function<void(const RecordingInfo&)> begin;
        std::function<void(const Segment&)> segment;  // of segments with text
        std::function<void(const Transcription&)> end;
        std::function<void(const Transcription&)> progress;  // of the oldest recording
        std::function<void(const Attempt&)> attempt;         // every decoding, rejected ones too
    };

    // Holds references: context, models and tokenizer must outlive it. `draft` may be null. Throws
    // Error if the model does not support an option.
    Transcriber(Context& ctx, const Model& model, const Tokenizer& tokenizer,
                const TranscribeOptions& options, Listener listener, const Model* draft = nullptr);

    // Takes a complete recording.
    void add(RecordingInfo info, std::string error, MelRecording mel);
    // Whether another recording would fill idle slots soon.
    bool has_room() const;
    bool idle() const { return recordings_.empty(); }
    int64_t slots() const { return decoder_.slots(); }  // windows decoded at once
    // Starts windows in free slots, decodes one token of each window, and calls the listener with
    // what is ready. On the CPU a recording's text does not depend on the others, to the bit.
    void advance();

  private:
    // A window in a slot.
    struct SlotState {
        Transcription* recording = nullptr;  // null: the slot is free
        Transcription::Work work;
        std::string language;
        size_t attempt = 0;  // index into temperatures_
    };

    void refill();
    bool claim(int64_t slot);
    // Encodes the windows of these slots; their mel is written to windows_ from `first` on.
    void encode(std::span<const int64_t> slots, int64_t first);
    std::span<float> window(int64_t i) const;  // of windows_
    void start_waiting();
    WindowTask task_of(int64_t slot) const;
    void finish(int64_t slot, const DecodingResult& result);
    // `progressed`: a window has ended, so progress is reported.
    void emit_ready(bool progressed);

    Context& ctx_;
    const Model& model_;
    const Tokenizer& tokenizer_;
    TranscribeOptions options_;
    std::vector<double> temperatures_;  // of a window's attempts
    Listener listener_;
    WindowDecoder decoder_;
    LoopOptions loop_options_;
    std::vector<SlotState> slots_;
    std::vector<int64_t> waiting_;  // slots with an encoded window that must be decoded, or retried
    // Pinned memory for a GPU: the next windows' mel is normalised and copied while it encodes the
    // previous ones. A place is reused only after the GPU has finished.
    Arena memory_;
    Tensor windows_;  // (some, 3000, n_mels)
    std::deque<std::unique_ptr<Transcription>> recordings_;
    bool begun_ = false;  // listener_.begin was called for the oldest recording
};

}  // namespace hark::whisper
