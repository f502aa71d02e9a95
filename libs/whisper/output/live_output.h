// The lines of a live transcription: text, a line per final segment, or jsonl, a line per event.
#pragma once

#include <functional>
#include <string>

#include "whisper/output/formats.h"

namespace hark::whisper {

class LiveOutput {
  public:
    // `format` is text or jsonl; `layout` is that of text. `write` is given one line at a time,
    // with its line end.
    LiveOutput(const std::string& format, const TextLayout& layout,
               std::function<void(const std::string&)> write);

    void partial(const RecordingInfo& info, const LivePartial& partial);
    void final(const RecordingInfo& info, const LiveSegment& segment);
    // Writes the recording's error, if any.
    void end(const RecordingInfo& info, const std::string& error);

  private:
    bool events_;
    TextLayout layout_;
    std::function<void(const std::string&)> write_;
};

}  // namespace hark::whisper
