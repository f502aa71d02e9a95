// Whether a model is sound: its tensors, and what it makes of recordings.
#pragma once

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

// "word 3: expected 'ask', found 'asked'", of the first place where they differ; empty where none.
std::string first_difference(const Comparison& comparison);

}  // namespace hark::models
