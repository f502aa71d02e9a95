// What the system says of this process.
#pragma once

#include <cstdint>
#include <string>

namespace hark {

// The boot whose CLOCK_MONOTONIC monotonic_ns() is, as the system names it; empty if it does not.
std::string boot_id();

// The most bytes of memory that this process has had so far.
int64_t peak_memory();

}  // namespace hark
