// Whether a model is sound: its tensors, and what it makes of recordings.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/context.h"
#include "models/any_model.h"
#include "text/transcripts.h"
#include "text/word_errors.h"

namespace hark::models {

struct TensorCheck {
    int64_t tensors = 0, values = 0;  // looked at
    std::vector<std::string>
        problems;  // one a tensor that is missing, of another shape, not finite
};
TensorCheck check_tensors(const AnyModel& model);

// The transcripts of recordings, each a file in any format, in their order and as
// whisper-transcribe makes them without other flags. One that broke carries its error.
std::vector<Transcript> transcribe_files(Context& ctx, whisper::ModelFile& file,
                                         const std::string& dtype,
                                         const std::vector<std::string>& paths);

// What is said of recordings and their references.
struct TranscriptCheck {
    std::vector<std::string> lines;  // "a.wav: as expected", or its first difference; then the rate
    std::vector<std::string> problems;  // recordings that broke or have no reference
    std::optional<double> percent;      // of wrong words; nullopt if nothing was compared
    std::string rate;                   // the last line: "word error rate 3.1% of 5000 words"
};
// Compares the words of each reference with its recording's, after Whisper's normaliser for
// English.
TranscriptCheck check_transcripts(const std::vector<Transcript>& references,
                                  const std::vector<Transcript>& transcripts);

// "word 3: expected 'ask', found 'asked'", of the first place where they differ; empty if there is
// none.
std::string first_difference(const Comparison& comparison);

}  // namespace hark::models
