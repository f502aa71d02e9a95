// What is asked of a Whisper model, and what is told of its transcript.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "core/files/io.h"
#include "serve/web/form.h"
#include "serve/web/web_error.h"
#include "whisper/output/formats.h"
#include "whisper/transcribe/transcribe_options.h"

namespace hark::serve {

struct Transcript {
    std::string text;      // of all windows
    std::string language;  // its code; empty if there is no sound
    double seconds = 0;    // of the recording
    std::vector<whisper::Segment> segments;
};

// Told of a recording's transcript, on the server's thread.
class AudioListener {
  public:
    virtual ~AudioListener() = default;

    virtual void segment(const whisper::Segment& segment) = 0;
    virtual void ended(const Transcript& transcript) = 0;
    // Instead of the rest: why there is none.
    virtual void failed(const WebError& why) = 0;
};

struct AudioJob {
    std::shared_ptr<SpooledFile> file;
    whisper::TranscribeOptions options;
    std::weak_ptr<AudioListener> listener;

    bool has_begun = false;  // to be transcribed; for the server's thread
    std::atomic<bool> is_cancelled = false;
    Interrupt stop;  // of reading what the decoder writes
};

}  // namespace hark::serve
