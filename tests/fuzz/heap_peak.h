// The heap memory that a target takes at its peak, counted by the sanitizer's hooks.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "fuzz/target.h"

// The sanitizer's own; missing in a build without it.
extern "C" int __sanitizer_install_malloc_and_free_hooks(void (*)(const volatile void*, size_t),
                                                         void (*)(const volatile void*))
    __attribute__((weak));
extern "C" size_t __sanitizer_get_allocated_size(const volatile void*) __attribute__((weak));

namespace hark::fuzz {

class HeapPeak {
  public:
    // Counts from now on: once in a process. False in a build without the sanitizer.
    static bool install() {
        if (!__sanitizer_install_malloc_and_free_hooks) return false;
        __sanitizer_install_malloc_and_free_hooks(
            [](const volatile void*, size_t size) {
                const int64_t now = now_ += static_cast<int64_t>(size);
                int64_t peak = peak_;
                while (peak < now && !peak_.compare_exchange_weak(peak, now)) {
                }
            },
            [](const volatile void* at) {
                if (at) now_ -= static_cast<int64_t>(__sanitizer_get_allocated_size(at));
            });
        const HeapPeak heap;
        constexpr size_t kSome = 100'000;
        std::vector<char> some(kSome);
        *static_cast<volatile char*>(some.data()) = 1;  // so that it stays
        if (heap.bytes() < static_cast<int64_t>(some.size())) std::abort();
        return true;
    }
    HeapPeak() : begin_(now_) { peak_ = begin_; }
    // Bytes above those at the beginning of this object's life.
    int64_t bytes() const { return peak_ - begin_; }
    // Bytes that an input of this size may not take, unless its target allows them.
    int64_t beyond(size_t input_bytes) const {
        return bytes() - kTimesInput * static_cast<int64_t>(input_bytes);
    }

  private:
    static inline std::atomic<int64_t> now_ = 0, peak_ = 0;
    int64_t begin_;
};

}  // namespace hark::fuzz
