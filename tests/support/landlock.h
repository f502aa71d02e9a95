// Whether audio-decode's sandbox is whole on this machine.
#pragma once

#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>

namespace hark::test {

inline constexpr long kCreateLandlock = 444;  // its system call

inline bool has_landlock() { return ::syscall(kCreateLandlock, nullptr, std::size_t{0}, 1u) >= 1; }

}  // namespace hark::test
