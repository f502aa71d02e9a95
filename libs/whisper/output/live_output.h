// A live transcription on stdout: text, a line per final segment, or jsonl, a line per event.
#pragma once

#include <string>

#include "core/io.h"
#include "whisper/output/formats.h"

namespace hark::whisper {

// Flushes each line.
class LiveOutput {
  public:
    // `format` is text or jsonl; `layout` is that of text.
    LiveOutput(const std::string& format, const TextLayout& layout);

    void partial(const RecordingInfo& info, const LivePartial& partial);
    void final(const RecordingInfo& info, const LiveSegment& segment);
    // Writes the recording's error, if any.
    void end(const RecordingInfo& info, const std::string& error);

  private:
    void write(const std::string& lines);

    bool events_;
    TextLayout layout_;
    ByteWriter stdout_;
};

}  // namespace hark::whisper
