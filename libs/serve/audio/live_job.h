// A live transcription: its sound, from the server's thread to the model's, and its lines back.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "serve/web/web_error.h"
#include "whisper/transcribe/transcribe_options.h"

namespace hark::serve {

// Told of a live transcription, on the server's thread.
class LiveListener {
  public:
    virtual ~LiveListener() = default;

    // A line of `whisper-transcribe --live --format jsonl`, without its end.
    virtual void line(const std::string& line) = 0;
    // The job has room again.
    virtual void has_room() = 0;
    // After the last line.
    virtual void ended() = 0;
    // Instead of the rest: why there is none.
    virtual void failed(const WebError& why) = 0;
};

class LiveJob {
  public:
    // `rate`: samples per second of its sound.
    LiveJob(int rate, whisper::TranscribeOptions options)
        : rate(rate), options(std::move(options)) {}

    // For the server's thread. Little-endian 16-bit samples, cut anywhere.
    void add(std::string_view bytes);
    void end();
    // Whether less than half a minute of sound waits for the model.
    bool has_room() const;

    // For the model's thread.
    struct Sound {
        std::string bytes;
        bool has_ended = false;  // no more will come
        bool was_full = false;   // there was no room
    };
    Sound take();
    bool has_news() const;  // for take(), whose end is the last

    const int rate;
    const whisper::TranscribeOptions options;
    std::weak_ptr<LiveListener> listener;
    std::atomic<bool> is_cancelled = false;

  private:
    size_t most_bytes() const;

    mutable std::mutex mutex_;
    Sound sound_;
};

}  // namespace hark::serve
