// Runs whisper-transcribe: reads a mel stream on stdin, writes transcripts.
#pragma once

#include <string>

#include "core/cli/cli.h"
#include "kernels/runtime/backend.h"
#include "whisper/output/output.h"
#include "whisper/transcribe/transcribe_options.h"

namespace hark::whisper {

struct RunOptions {
    std::string model, tokenizer;
    TranscribeOptions transcribe;
    OutputOptions output;
    ComputeOptions compute;
    bool live = false;
    bool check_only = false;

    void flags(Flags& flags);
    // Throws UsageError if options conflict. Sets options that depend on others.
    void check();
};

void transcribe_stdin(const RunOptions& options, Console& console);

}  // namespace hark::whisper
