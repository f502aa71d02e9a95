// Pieces of weights, which threads take one by one.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>

#include "kernels/runtime/parallel.h"

namespace hark {

// Bytes of weights that a thread checks and then copies: they are still in its core's cache.
constexpr int64_t kPieceBytes = int64_t{1} << 20;

// Calls use(worker, i) for i in [0, n), worker in [0, threads). Each thread takes the least i left.
// After a call has thrown, no other begins; the error of the least i is rethrown. The number of
// threads does not depend on n: OpenMP would start new ones for another number.
template <class Use>
void for_pieces(int threads, int64_t n, const Use& use) {
    std::atomic<int64_t> next = 0;
    std::mutex mutex;
    int64_t failed = n;
    std::exception_ptr why;
    parallel_for(threads, std::clamp<int64_t>(n, 1, std::max(threads, 1)), [&](int64_t worker) {
        for (int64_t i; (i = next++) < n;) {
            try {
                use(worker, i);
            } catch (...) {
                next = n;
                const std::lock_guard<std::mutex> lock(mutex);
                if (i < failed) {
                    failed = i;
                    why = std::current_exception();
                }
            }
        }
    });
    if (why) std::rethrow_exception(why);
}

}  // namespace hark
