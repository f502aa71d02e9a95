#include "operations/speed/memory_speed.h"

#include <algorithm>

#include "operations/speed/timing.h"

namespace hark {
namespace {

// In the widest vectors that the processor has, and asking ahead.
#if defined(__x86_64__)
__attribute__((target_clones("avx512f", "avx2", "default")))
#endif
uint64_t
read_words(const uint64_t* words, int64_t count) {
    uint64_t sums[32] = {};
    for (int64_t i = 0; i < count; i += 32) {
        for (int line = 0; line < 32; line += 8) __builtin_prefetch(words + i + 512 + line);
        for (int j = 0; j < 32; ++j) sums[j] ^= words[i + j];
    }
    uint64_t sum = 0;
    for (const uint64_t part : sums) sum ^= part;
    return sum;
}

}  // namespace

double read_bandwidth(int threads, double bytes, double seconds) {
    constexpr int64_t kPiece = 4096;  // words: 32 KiB
    const int64_t pieces = std::max<int64_t>(static_cast<int64_t>(bytes / (8 * kPiece)), 8);
    std::vector<uint64_t> memory(static_cast<size_t>(pieces * kPiece));
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int64_t i = 0; i < pieces; ++i)
        for (int64_t j = i * kPiece; j < (i + 1) * kPiece; ++j)
            memory[j] = static_cast<uint64_t>(j) * 0x9E3779B97F4A7C15u;
    volatile uint64_t seen = 0;
    const double ms = median_ms(
        [&] {
            uint64_t sum = 0;
#pragma omp parallel for num_threads(threads) schedule(static) reduction(^ : sum)
            for (int64_t i = 0; i < pieces; ++i)
                sum ^= read_words(memory.data() + i * kPiece, kPiece);
            seen = sum;
        },
        5, seconds);
    return static_cast<double>(pieces * kPiece) * 8 / ms * 1e-6;
}

}  // namespace hark
