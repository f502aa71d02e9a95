// Recordings from their log-mel spectrograms to their segments, several side by side.
// Source of what happens to each: openai/whisper transcribe.py.
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

// One attempt at a window: what came out, and why it was refused if it was.
struct Attempt {
    int64_t seek = 0;
    DecodingResult result;
    Rejection rejection = Rejection::none;
};

// What to add to the message that a GPU's memory does not suffice for `windows` side by side: to
// take `most` of them, where these would need less (keep_of: fewer may take more each).
std::string memory_advice(int64_t windows, int64_t most);

class Transcriber {
  public:
    // What comes out, recording by recording in the order of add().
    struct Listener {
        std::function<void(const RecordingInfo&)> begin;
        std::function<void(const Segment&)> segment;  // one with text
        std::function<void(const Transcription&)> end;
        std::function<void(const Transcription&)> progress;  // of the oldest recording
        std::function<void(const Attempt&)> attempt;         // every decoding, refused ones too
    };

    // Holds references: context, models and tokenizer must outlive it; `draft` may be null. Throws
    // Error where the model cannot do what the options ask for.
    Transcriber(Context& ctx, const Model& model, const Tokenizer& tokenizer,
                const TranscribeOptions& options, Listener listener, const Model* draft = nullptr);

    // Takes a recording that is complete.
    void add(RecordingInfo info, std::string error, MelRecording mel);
    // Whether another recording would find something to do.
    bool has_room() const;
    bool idle() const { return recordings_.empty(); }
    int64_t slots() const { return decoder_.slots(); }  // windows side by side
    // Begins windows where slots are free, decodes one token of each, and gives out what is ready.
    // A recording's text does not depend on the others, to the bit (CPU).
    void advance();

  private:
    // A window in a slot.
    struct Busy {
        Transcription* recording = nullptr;  // null: the slot is free
        Transcription::Work work;
        std::string language;
        size_t attempt = 0;  // which of the temperatures
    };

    void refill();
    bool claim(int64_t slot);
    // The windows of these slots, whose mel goes to windows_ from `first` on.
    void encode(std::span<const int64_t> slots, int64_t first);
    std::span<float> window(int64_t i) const;  // of windows_
    void start_waiting();
    WindowTask task_of(int64_t slot) const;
    void finish(int64_t slot, const DecodingResult& result);
    // `moved_on`: a window has ended, so that there is progress to tell of.
    void give_out(bool moved_on);

    Context& ctx_;
    const Model& model_;
    const Tokenizer& tokenizer_;
    TranscribeOptions options_;
    std::vector<double> temperatures_;  // of the attempts at a window
    Listener listener_;
    WindowDecoder decoder_;
    LoopOptions loop_options_;
    std::vector<Busy> busy_;        // by slot
    std::vector<int64_t> waiting_;  // slots whose window has been encoded, to be decoded anew
    // Where a GPU computes, pinned: the mel of the next windows is normalised and copied while it
    // encodes the ones in front. A place is written again only after results have come back.
    Arena memory_;
    Tensor windows_;  // (some, 3000, n_mels)
    std::deque<std::unique_ptr<Transcription>> recordings_;
    bool begun_ = false;  // the front recording has been announced
};

}  // namespace hark::whisper
