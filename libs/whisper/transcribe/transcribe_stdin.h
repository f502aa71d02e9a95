// A run of whisper-transcribe: from the mel stream on stdin to the transcripts.
#pragma once

#include <string>

#include "core/cli.h"
#include "whisper/output/output.h"
#include "whisper/transcribe/transcribe_options.h"

namespace hark::whisper {

struct RunOptions {
    std::string model, tokenizer;
    TranscribeOptions transcribe;
    OutputOptions output;
    ComputeOptions compute;
    bool live = false;

    void flags(Flags& flags);
    // Throws UsageError unless the options go together; fills in what depends on other options.
    void check();
};

void transcribe_stdin(const RunOptions& options, Console& console);

}  // namespace hark::whisper
