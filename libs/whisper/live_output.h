// A live transcription on stdout: text, a line a final segment, or jsonl, a line an event.
#pragma once

#include <string>

#include "core/io.h"
#include "whisper/formats.h"
#include "whisper/live.h"

namespace hark::whisper {

// Every line is flushed as it comes.
class LiveOutput {
  public:
    // `format` is text or jsonl.
    explicit LiveOutput(const std::string& format);

    void partial(const RecordingInfo& info, const LivePartial& partial);
    void final(const RecordingInfo& info, const LiveSegment& segment);
    // What broke the recording, if anything did.
    void end(const RecordingInfo& info, const std::string& error);

  private:
    void write(const std::string& lines);

    bool events_;
    ByteWriter stdout_;
};

}  // namespace hark::whisper
