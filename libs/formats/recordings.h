// Recordings on a tensor stream: the checks that audio and mel documents have in common.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "formats/tensor_stream.h"

namespace hark {

inline constexpr int kSampleRate = 16000;   // Hz, of every audio stream
inline constexpr double kMaxMissing = 0.1;  // seconds that may be missing without an error

// One document of a recording.
struct Chunk {
    std::string kind;       // "audio" or "mel"
    std::string recording;  // id, free again after the recording's last chunk
    std::string channel = "0";
    std::string source;  // the recording's name
    int64_t start = 0;   // index of the first sample or frame within the recording
    bool last = false;
    std::string error;    // on the last chunk: what broke the recording
    bool lacks_end = false;  // with an error: the recording is whole up to here
    std::string warning;  // on the last chunk, for the console; not part of the stream
    Document document;    // with the tensor, and everything that is passed on

    // The kind's own tensor: `samples` f32 (n), or `log_mel` f32 (n_mels, frames).
    Tensor values() const { return document.tensor(kind == "audio" ? "samples" : "log_mel"); }
    int64_t length() const { return values().dim(-1); }  // samples or frames
};

// Reads the chunks of one kind. Throws Error naming the document if its kind, dtype, rank or
// sample rate is wrong, a value is not finite, a chunk does not begin where the one before it
// ended, or the stream ends before a recording's last chunk.
class RecordingReader {
  public:
    // `hint` tells what to do if this is another kind or no tensor stream: "pipe it through mel
    // first".
    RecordingReader(ByteReader& in, std::string kind, std::string hint);

    std::optional<Chunk> next();

  private:
    struct Progress {
        std::string where;  // of its newest document
        int64_t next_start = 0;
        int64_t n_mels = 0;
    };
    Chunk parse(Document document) const;
    void follow(const Chunk& chunk);

    TensorStreamReader stream_;
    std::string kind_, hint_;
    std::map<std::string, Progress> open_;
    bool any_ = false;
};

// The samples [begin, end) of a recording.
struct Region {
    int64_t begin = 0, end = 0;

    bool operator==(const Region&) const = default;
};

// Returns the regions in a document's tensor `speech` I64 (k, 2); nullopt if it has no such tensor.
// Throws Error naming the document unless they are sorted, disjoint and not empty.
std::optional<std::vector<Region>> speech_of(const Document& document);
// Adds that tensor to a document that has none.
void add_speech(Document& document, std::span<const Region> regions);

// "ends at 13.3 of 26.7 s": the error of a recording that is shorter than its container states,
// with as many digits as show the difference.
std::string ends_at(double found_seconds, double stated_seconds);

// Sets a chunk's metadata from its fields and writes the document.
void write_chunk(ByteWriter& out, Chunk chunk);

}  // namespace hark
