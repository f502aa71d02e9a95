// What mel reads on stdin: an audio stream, an audio file, or PCM without a header.
#pragma once

#include <string>

#include "audio/mel_stream.h"
#include "core/sandbox/sandbox.h"

namespace hark {

struct MelInput {
    ReadOptions read;
    SandboxOptions sandbox;
    std::string raw = "no";                           // the PCM's format: "s16le" or "f32le"
    int64_t sample_rate = kSampleRate, channels = 1;  // of the PCM

    void flags(Flags& flags);
    void check() const;  // throws UsageError if flags contradict each other

    // Pushes all of stdin to `stream`. `chunk` is the one that cuts the output. A file is decoded
    // in the sandbox, unless `on_gpu`: a GPU's driver needs what the sandbox refuses. A file that
    // breaks is reported to `console`, and what was decoded is pushed. Throws Error if a stream
    // breaks: its open recordings then end with that error.
    void read_all(MelStream& stream, const ChunkOptions& chunk, bool on_gpu,
                  const MelStream::Emit& emit, Console& console) const;

  private:
    std::unique_ptr<Decoder> open_raw(Input& input) const;
    void enter_sandbox(Input& input, bool on_gpu, Console& console) const;
    void read_file(std::unique_ptr<Input> in, MelStream& stream, const ChunkOptions& chunk,
                   const MelStream::Emit& emit, Console& console) const;
};

}  // namespace hark
