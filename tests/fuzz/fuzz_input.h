// Fuzz input as the Input of a decoder.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>

#include "audio/audio_chunks.h"

namespace hark::fuzz {

// Decodes the bytes to the end, whether they hold audio or not.
inline void decode_bytes(const uint8_t* data, size_t size, const AudioChunks::Open& open) {
    const int fd = ::memfd_create("input", MFD_CLOEXEC);
    if (fd < 0 || ::write(fd, data, size) != static_cast<ssize_t>(size)) std::abort();
    ::lseek(fd, 0, SEEK_SET);
    {
        ReadOptions options;
        options.split_channels = size % 2 == 1;
        AudioChunks chunks(std::make_unique<Input>(fd, "input"), "1", options, kSampleRate, open);
        while (chunks.next()) {
        }
    }
    ::close(fd);
}

}  // namespace hark::fuzz
