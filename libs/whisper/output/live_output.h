// A live transcription on stdout: text, a line per final segment, or jsonl, a line per event.
#pragma once

#include <string>

#include "core/io.h"
#include "whisper/output/formats.h"

namespace hark::whisper {

// Every line is flushed as it comes.
class LiveOutput {
  public:
    // `format` is text or jsonl; `layout` is that of text.
    LiveOutput(const std::string& format, const TextLayout& layout);

    void partial(const RecordingInfo& info, const LivePartial& partial);
    void final(const RecordingInfo& info, const LiveSegment& segment);
    // What broke the recording, if anything did.
    void end(const RecordingInfo& info, const std::string& error);

  private:
    void write(const std::string& lines);

    bool events_;
    TextLayout layout_;
    ByteWriter stdout_;
};

}  // namespace hark::whisper
