// The memory that this machine can still give.
#pragma once

#include <cstdint>

namespace hark {

// Bytes that programs can take without swapping: /proc/meminfo's MemAvailable, or less if a limit
// of this process's address space (ulimit -v) is lower. Without /proc, which not every chroot has:
// what is free, caches not counted.
int64_t available_memory();

}  // namespace hark
