// How fast this machine reads its memory.
#pragma once

namespace hark {

// GB/s of reading the same `bytes` again and again with `threads` threads for about `seconds`.
// Bytes that a cache holds are read from it.
double read_bandwidth(int threads, double bytes, double seconds = 0.4);

}  // namespace hark
