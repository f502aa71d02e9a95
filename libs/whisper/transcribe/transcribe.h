// Transcribes recordings from log-mel spectrograms to segments, several at once. Each is decoded as
// openai/whisper transcribe.py does.
#pragma once

#include <deque>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/arena.h"
#include "whisper/transcribe/transcribe_options.h"
#include "whisper/transcribe/transcription.h"

namespace hark {
struct Context;
struct Precision;
}  // namespace hark

namespace hark::whisper {

struct Config;
struct Model;
class WindowDecoder;
struct WindowTask;

// One decoding of a window, and why it was rejected, if it was.
struct Attempt {
    int64_t seek = 0;
    DecodingResult result;
    Rejection rejection = Rejection::none;
};

// Advice for a GPU out of memory with `windows` windows: a batch of `most`, unless that changes
// cross_kv_mode(), since fewer windows may then take more memory each.
std::string memory_advice(int64_t windows, int64_t most);

// The caches of a batch without a draft model: bytes of each window, and how many windows there are
// if --batch-size asks for no number and a GPU has room for them.
struct BatchMemory {
    int64_t window = 0, windows = 0;
};
BatchMemory batch_memory(const Context& ctx, const Config& config, const Precision& precision,
                         const TranscribeOptions& options);

class Transcriber {
  public:
    // Callbacks, recording by recording in the order of add().
    struct Listener {
        std::function<void(const RecordingInfo&)> begin;
        std::function<void(const Segment&)> segment;  // of segments with text
        std::function<void(const Transcription&)> end;
        std::function<void(const Transcription&)> progress;  // of the oldest recording
        std::function<void(const Attempt&)> attempt;         // every decoding, rejected ones too
        // Asked at each advance(): whether somebody still wants the recording. Otherwise it is
        // dropped, and nothing more is told of it.
        std::function<bool()> is_wanted;
    };

    // Holds references: context, models and tokenizer must outlive it. `draft` may be null. Throws
    // Error if the model does not support an option.
    Transcriber(Context& ctx, const Model& model, const Tokenizer& tokenizer,
                const TranscribeOptions& options, Listener listener, const Model* draft = nullptr);
    ~Transcriber();

    // Takes a complete recording.
    void add(RecordingInfo info, std::string error, MelRecording mel);
    // The same with its own task, languages, temperatures, prompts, clips, thresholds, speech
    // detection and words; the other options are the run's. `listener` does not wait for the
    // recordings before this one, and of such recordings the one that has had the fewest windows is
    // next. Throws Error if the model does not support an option.
    void add(RecordingInfo info, std::string error, MelRecording mel,
             const TranscribeOptions& options, Listener listener);
    // Whether another recording would fill idle slots soon.
    bool has_room() const;
    bool idle() const { return recordings_.empty(); }
    int64_t recordings() const { return std::ssize(recordings_); }
    int64_t slots() const;            // windows decoded at once
    int64_t windows_at_once() const;  // encoded
    // Starts windows in free slots, at most `most_new`, decodes one token of each window, and calls
    // the listeners with what is ready. On the CPU a recording's text does not depend on the
    // others, to the bit.
    void advance(int64_t most_new = std::numeric_limits<int64_t>::max());

  private:
    // What recordings are transcribed with.
    struct Settings {
        TranscribeOptions options;
        std::vector<double> temperatures;  // of a window's attempts
        LoopOptions loop;
        Listener listener;
    };
    struct Recording {
        Transcription transcription;
        std::shared_ptr<const Settings> settings;
        bool is_in_order;     // told of after those before it
        bool begun = false;   // listener.begin was called
        int64_t windows = 0;  // started, of one that is not in order
    };
    // A window in a slot.
    struct SlotState {
        Recording* recording = nullptr;  // null: the slot is free
        Transcription::Work work;
        std::string language;
        size_t attempt = 0;    // index into the temperatures
        bool encoded = false;  // by the detection of the language
    };

    std::shared_ptr<const Settings> settings_of(const TranscribeOptions& options,
                                                Listener listener) const;
    void add(RecordingInfo info, std::string error, MelRecording mel,
             std::shared_ptr<const Settings> settings, bool is_in_order);
    void drop_unwanted();
    void refill(int64_t most_new);
    bool claim(int64_t slot);
    bool claim(int64_t slot, Recording& recording);
    // Encodes the windows of these slots; their mel is written to windows_ from `first` on.
    void encode(std::span<const int64_t> slots, int64_t first);
    std::span<float> window(int64_t i) const;  // of windows_
    void start_waiting();
    WindowTask task_of(int64_t slot) const;
    void finish(int64_t slot, const DecodingResult& result);
    // `progressed`: a window has ended, so progress is reported.
    void emit_ready(bool progressed);
    // The same of one recording. Returns whether it has ended.
    bool emit(Recording& recording, bool progressed);

    Context& ctx_;
    const Tokenizer& tokenizer_;
    std::unique_ptr<WindowDecoder> decoder_;
    std::shared_ptr<const Settings> settings_;  // of recordings without their own
    std::vector<SlotState> slots_;
    std::vector<int64_t> waiting_;  // slots with an encoded window that must be decoded, or retried
    // Pinned memory for a GPU: the next windows' mel is normalised and copied while it encodes the
    // previous ones. A place is reused only after the GPU has finished.
    Arena memory_;
    Tensor windows_;  // (some, 3000, n_mels)
    std::deque<std::unique_ptr<Recording>> recordings_;
};

}  // namespace hark::whisper
