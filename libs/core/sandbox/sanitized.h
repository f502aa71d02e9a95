// What the sanitizers need of a sandbox: their search for leaks reads /proc and traces the program
// from a process of its own.
#pragma once

namespace hark {

#ifdef __SANITIZE_ADDRESS__
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif
inline constexpr const char* kSanitizersFolder = "/proc";

}  // namespace hark
