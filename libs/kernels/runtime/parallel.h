// A loop over independent tasks on the context's threads.
#pragma once

#include <cstdint>

namespace hark {

// Columns per task that adds rows in their order.
inline constexpr int64_t kColumnsAtOnce = 64;

// body(i) for i in [0, n), in contiguous ranges. The results of a task must not depend on the
// number of threads. The body must not throw.
template <class Body>
void parallel_for(int threads, int64_t n, const Body& body) {
    if (threads <= 1 || n <= 1) {
        for (int64_t i = 0; i < n; ++i) body(i);
        return;
    }
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int64_t i = 0; i < n; ++i) body(i);
}

}  // namespace hark
