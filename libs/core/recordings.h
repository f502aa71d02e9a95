// Recordings on a tensor stream: what audio and mel documents have in common, checked once.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/tensor_stream.h"

namespace hark {

inline constexpr int kSampleRate = 16000;  // Hz, of every audio stream

// One document of a recording.
struct Chunk {
    std::string kind;       // "audio" or "mel"
    std::string recording;  // id, free again after the recording's last chunk
    std::string channel = "0";
    std::string source;  // the recording's name
    int64_t start = 0;   // index of the first sample or frame within the recording
    bool last = false;
    std::string error;    // on the last chunk of a recording that broke: what broke
    std::string warning;  // on the last chunk: what the tool says of it; not part of the stream
    Document document;    // with the tensor, and everything that is passed on

    // The tensor that the kind demands: `samples` f32 (n), or `log_mel` f32 (n_mels, frames).
    Tensor values() const { return document.tensor(kind == "audio" ? "samples" : "log_mel"); }
    int64_t length() const { return values().dim(-1); }  // samples or frames
};

// Reads the chunks of one kind. Throws Error naming the document, what was expected and what was
// found: another kind, a wrong dtype, rank or sample rate, a value that is not finite, a chunk that
// does not begin where the one before it ended, a stream that ends before a recording's last chunk.
class RecordingReader {
  public:
    // `hint` tells what to do where the kind is another one: "pipe it through mel first".
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

// A stretch of a recording: its samples [begin, end).
struct Region {
    int64_t begin = 0, end = 0;

    bool operator==(const Region&) const = default;
};

// The regions of speech that a document tells of, in its tensor `speech` I64 (k, 2); nullopt where
// it has none. Throws Error naming the document where they are not sorted, disjoint and not empty.
std::optional<std::vector<Region>> speech_of(const Document& document);
// Adds that tensor to a document that has none.
void add_speech(Document& document, std::span<const Region> regions);

// Metadata of a chunk set from its fields, then written.
void write_chunk(ByteWriter& out, Chunk chunk);

}  // namespace hark
