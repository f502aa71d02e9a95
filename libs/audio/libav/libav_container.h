// The packets of one audio track of a file that libavformat reads.
#pragma once

extern "C" {
#include <libavformat/avformat.h>
}

#include <cstdint>
#include <exception>
#include <string>
#include <vector>

#include "audio/input.h"

namespace hark {

// libav's text for one of its error codes.
std::string libav_error(int code);

class LibavContainer {
  public:
    // Throws Error naming the input if it is no container that is allowed (libav_allowed.h) or has
    // no such audio track. `input` must outlive this.
    LibavContainer(Input& input, int track);
    ~LibavContainer() { release(); }
    LibavContainer(const LibavContainer&) = delete;
    LibavContainer& operator=(const LibavContainer&) = delete;

    // Fills `packet`, which is empty, with the track's next packet; false at the end.
    bool next(AVPacket& packet);

    const AVFormatContext& format() const { return *format_; }
    int track() const { return stream_; }  // the index of its stream
    const AVStream& stream() const { return *format_->streams[stream_]; }
    // Seconds: where the last packet of each stream ends.
    const std::vector<double>& stream_ends() const { return stream_ends_; }
    int broken() const { return broken_; }  // libav's error that ended reading, or 0
    // Throws what the input has thrown inside libav's callbacks.
    void rethrow() const {
        if (read_failure_) std::rethrow_exception(read_failure_);
    }

  private:
    static int read(void* self, uint8_t* to, int bytes);
    static int64_t seek(void* self, int64_t offset, int whence);
    void open();
    void choose_stream(int track);
    void release();

    Input& input_;
    std::exception_ptr read_failure_;
    AVIOContext* io_ = nullptr;
    AVFormatContext* format_ = nullptr;
    int stream_ = -1;
    int broken_ = 0;
    int64_t retried_at_ = -1;  // byte of the input at which libav asked to be called again
    std::vector<double> stream_ends_;
};

}  // namespace hark
