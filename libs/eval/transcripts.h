// Transcripts as lines of JSON, and which of two sets belong together.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/files/io.h"

namespace hark {

struct Transcript {
    std::string source;
    std::string channel = "0";
    std::string text;
    std::string error;  // what broke the recording, where its lines say so

    std::string name() const;  // the source, and the channel where it is not the first
};

// The transcripts of lines as whisper-transcribe writes them with --format jsonl, or of any objects
// with a `source` and a `text` (or an `error`): in the order in which each source first comes, the
// texts of its lines joined. A space comes between if there is none, except next to scripts that
// are written without spaces. What is wrong with a line goes to `problems`, beginning with `where`
// and the line's number, and the others are read all the same.
std::vector<Transcript> parse_transcripts(std::string_view lines, const std::string& where,
                                          std::vector<std::string>& problems);

// What was said, from a file of such lines. Throws Error naming the file where one of them is wrong
// or tells of an error, or there are none.
std::vector<Transcript> read_references(const std::string& path);

// The transcripts of a stream. Lines that are wrong or tell of an error are added to `problems`.
// Throws Error for more than 1 GiB.
std::vector<Transcript> read_hypotheses(ByteReader& in, std::vector<std::string>& problems);

struct TranscriptPairs {
    // For each reference the hypothesis of the same recording, or nullptr.
    std::vector<const Transcript*> hypotheses;
    std::vector<const Transcript*> extra;  // hypotheses without a reference
};

// Pairs of the same source and channel; then, of those left over, pairs whose file names without
// folder and ending are equal, where no other source of either set has that name. The pointers are
// into `hypotheses`.
TranscriptPairs pair_transcripts(const std::vector<Transcript>& references,
                                 const std::vector<Transcript>& hypotheses);

}  // namespace hark
