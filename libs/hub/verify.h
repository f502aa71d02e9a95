// Checks of a model: its tensors, and its transcripts of recordings.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/context.h"
#include "eval/transcripts.h"
#include "eval/word_errors.h"

namespace hark::whisper {
struct Model;
class ModelFile;
class Tokenizer;
struct TranscribeOptions;
}  // namespace hark::whisper

namespace hark::models {

struct ModelHandle;

struct TensorCheck {
    int64_t tensors = 0, values = 0;  // without a problem
    // One for each tensor that is missing, of another shape or not finite.
    std::vector<std::string> problems;
};
TensorCheck check_tensors(const ModelHandle& model);

// Returns the transcripts of recordings in their order, as whisper-transcribe makes them without
// flags. A path is a file in any format. A recording that failed has its error.
std::vector<Transcript> transcribe_files(Context& ctx, whisper::ModelFile& file,
                                         const std::string& dtype,
                                         const std::vector<std::string>& paths);
// The same with a model that has been read, and with options.
struct TranscribedFiles {
    std::vector<Transcript> transcripts;
    double seconds = 0;         // of audio
    double decode_seconds = 0;  // that decoding and mel took, before and between the model's work
};
TranscribedFiles transcribe_files(Context& ctx, const whisper::Model& model,
                                  const whisper::Tokenizer& tokenizer,
                                  const whisper::TranscribeOptions& options,
                                  const std::vector<std::string>& paths);

// The result of a comparison with references.
struct TranscriptCheck {
    std::vector<std::string> lines;  // "a.wav: as expected", or its first difference; then the rate
    std::vector<std::string> problems;  // recordings that failed or have no reference
    std::optional<double> percent;      // of wrong words; nullopt if nothing was compared
    std::string rate;                   // the last line: "word error rate 3.1% of 5000 words"
};
// Compares the words of each reference with its recording's, after Whisper's normalizer for
// English.
TranscriptCheck check_transcripts(const std::vector<Transcript>& references,
                                  const std::vector<Transcript>& transcripts);

// "word 3: expected 'ask', found 'asked'" for the first difference; empty if there is none.
std::string first_difference(const Comparison& comparison);

}  // namespace hark::models
