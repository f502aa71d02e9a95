// audio-decode as a process of its own: what a recording's file makes it do ends with it.
#pragma once

#include <sys/types.h>

#include <string>

namespace hark::serve {

// Throws Error if audio-decode is not next to this program.
std::string decoder_program();

class DecoderProcess {
  public:
    // Decodes the file, from its beginning, with limits of memory and of the processor's time.
    // Throws Error if it cannot be started.
    DecoderProcess(const std::string& program, int file);
    // Kills it if it has not ended.
    ~DecoderProcess();
    DecoderProcess(const DecoderProcess&) = delete;

    // The end of a pipe with its stdout: a stream of audio.
    int out() const { return out_; }

  private:
    pid_t child_ = -1;
    int out_ = -1;
};

}  // namespace hark::serve
