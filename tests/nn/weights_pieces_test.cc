// Threads check and copy stored weights in pieces.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <mutex>
#include <thread>

#include "core/half.h"
#include "nn/weights.h"
#include "support/error_of.h"
#include "support/ops.h"

namespace hark::test {
namespace {

constexpr int kThreads = 5;
constexpr int64_t kMega = 1 << 20;
// Rows of 1,000 bytes: no piece ends at a power of two. The last piece is a short one.
constexpr int64_t kSize = 500, kRows = 3500;

// The host's memory in the place of GPU 3's. One at a time.
struct StandInMemory {
    static constexpr int kGpu = 3;
    struct Write {
        std::byte* to;
        int64_t bytes;
    };
    static inline std::mutex mutex;
    static inline std::vector<Write> writes;
    static inline std::atomic<int> active = 0;
    static inline std::atomic<int> left = 0;  // writes until one fails

    static MemorySource source(int good_writes = 1 << 30) {
        writes.clear();
        left = good_writes;
        MemorySource memory = cpu_memory();
        memory.device = Device::cuda;
        memory.index = kGpu;
        memory.write_on = [](int index, void* to, const void* from, size_t bytes) {
            EXPECT_EQ(index, kGpu);
            ++active;
            std::this_thread::yield();
            const bool fails = left-- <= 0;
            if (!fails) std::memcpy(to, from, bytes);
            {
                const std::lock_guard<std::mutex> lock(mutex);
                writes.push_back({static_cast<std::byte*>(to), static_cast<int64_t>(bytes)});
            }
            --active;
            if (fails) fail("the GPU has failed");
        };
        return memory;
    }
};

std::vector<f16_t> numbers(int64_t n) {
    std::vector<f16_t> values(static_cast<size_t>(n));
    for (size_t i = 0; i < values.size(); ++i)
        values[i] = to_f16(static_cast<float>(i * 7919 % 4093) - 2000);
    return values;
}

Tensor matrix_of(std::vector<f16_t>& values) {
    return Tensor(values.data(), Dtype::f16, {std::ssize(values) / kSize, kSize});
}

// Each byte once, from the first to the last, by writes of 1 MB at most.
void expect_written_once(const Tensor& all) {
    std::sort(StandInMemory::writes.begin(), StandInMemory::writes.end(),
              [](const auto& a, const auto& b) { return a.to < b.to; });
    const auto* to = static_cast<const std::byte*>(all.data);
    for (const auto& write : StandInMemory::writes) {
        EXPECT_EQ(write.to, to);
        EXPECT_LE(write.bytes, kMega);
        to += write.bytes;
    }
    EXPECT_EQ(to, static_cast<const std::byte*>(all.data) + all.bytes());
}

TEST(WeightsPieces, ReachAGpuOnce) {
    std::vector<f16_t> a = numbers(kRows * kSize), b = numbers(3 * kSize);
    std::vector<f16_t> both = a;
    both.insert(both.end(), b.begin(), b.end());
    for (const int threads : {1, kThreads}) {
        WeightStore weights(WeightPrecision::as_stored, StandInMemory::source(), threads);
        const Matrix found = weights.matrix({matrix_of(a), matrix_of(b)});
        EXPECT_EQ(describe(found.values), concat("f16 (", kRows + 3, ", ", kSize, ")"));
        EXPECT_EQ(std::memcmp(found.values.data, both.data(), found.values.bytes()), 0);
        expect_written_once(found.values);
    }
}

TEST(WeightsPieces, OfConvertedWeightsReachAGpuOnce) {
    std::vector<f16_t> stored = numbers(kRows * kSize);
    WeightStore weights(WeightPrecision::f32, StandInMemory::source(), kThreads);
    const Matrix found = weights.matrix({matrix_of(stored)});
    for (size_t i = 0; i < stored.size(); ++i)
        ASSERT_EQ(found.values.as<float>()[i], to_float(stored[i])) << i;
    expect_written_once(found.values);
}

TEST(WeightsPieces, WaitUntilAllAreCopied) {
    std::vector<f16_t> a = numbers(kRows * kSize), b = numbers(3 * kSize);
    const float bias[] = {1, 2, 3};
    WeightStore weights(WeightPrecision::as_stored, StandInMemory::source(), kThreads);
    weights.gather();
    const Matrix first = weights.matrix({matrix_of(a)}), second = weights.matrix({matrix_of(b)});
    const Tensor third = weights.vector({Tensor(const_cast<float*>(bias), Dtype::f32, {3})});
    EXPECT_TRUE(StandInMemory::writes.empty());
    EXPECT_EQ(weights.waiting_bytes(), weights.bytes());
    weights.copy_waiting();
    EXPECT_EQ(weights.waiting_bytes(), 0u);
    EXPECT_EQ(std::memcmp(first.values.data, a.data(), first.values.bytes()), 0);
    EXPECT_EQ(std::memcmp(second.values.data, b.data(), second.values.bytes()), 0);
    EXPECT_EQ(std::memcmp(third.data, bias, sizeof bias), 0);
    EXPECT_EQ(std::ssize(StandInMemory::writes), 4 + 1 + 1);
    StandInMemory::writes.clear();
    weights.copy_waiting();
    EXPECT_TRUE(StandInMemory::writes.empty());
    // What is added afterwards does not wait.
    const Matrix last = weights.matrix({matrix_of(b)});
    EXPECT_EQ(std::memcmp(last.values.data, b.data(), last.values.bytes()), 0);
}

TEST(WeightsPieces, WaitForMoreUntilThereIsEnough) {
    std::vector<f16_t> stored = numbers(kRows * kSize);
    WeightStore weights(WeightPrecision::as_stored, StandInMemory::source(), kThreads);
    EXPECT_TRUE(weights.copy_enough());
    weights.gather();
    size_t matrices = 0;
    for (; weights.waiting_bytes() < size_t{256} << 20; ++matrices) {
        EXPECT_EQ(weights.copy_enough(), matrices == 0);
        weights.matrix({matrix_of(stored)});
    }
    EXPECT_TRUE(StandInMemory::writes.empty());
    EXPECT_TRUE(weights.copy_enough());
    EXPECT_EQ(StandInMemory::writes.size(), 4 * matrices);
    weights.matrix({matrix_of(stored)});
    EXPECT_FALSE(weights.copy_enough());
}

TEST(WeightsPieces, ThatWaitAreChecked) {
    std::vector<f16_t> good = numbers(kSize), bad = numbers(kSize);
    bad[1] = to_f16(NAN);
    WeightStore weights(WeightPrecision::as_stored, StandInMemory::source(), kThreads);
    weights.gather();
    weights.matrix({matrix_of(good)});
    weights.matrix({matrix_of(bad)});
    EXPECT_EQ(error_of([&] { weights.copy_waiting(); }),
              "weights: found a value that is not a finite number");
}

TEST(WeightsPieces, ErrorOfAWriteReachesTheCaller) {
    std::vector<f16_t> stored = numbers(kRows * kSize);
    for (const WeightPrecision kind : {WeightPrecision::as_stored, WeightPrecision::f32})
        for (const int good_writes : {0, 1, 3}) {
            WeightStore weights(kind, StandInMemory::source(good_writes), kThreads);
            try {
                weights.matrix({matrix_of(stored)});
                FAIL() << "after " << good_writes;
            } catch (const Error& why) {
                EXPECT_STREQ(why.what(), "the GPU has failed");
            }
            // A thread ends after its first error.
            EXPECT_LE(std::ssize(StandInMemory::writes), good_writes + kThreads);
            EXPECT_EQ(StandInMemory::active, 0);
        }
}

// The same error whatever piece holds the value.
TEST(WeightsPieces, FindAValueThatIsNotFiniteInEachOfThem) {
    const std::vector<f16_t> good = numbers(kRows * kSize);
    const int64_t piece = kMega / (kSize * 2) * kSize, last = kRows * kSize - 1;
    for (const int64_t place : {int64_t{0}, piece - 1, piece, 2 * piece, last - 1, last})
        for (const bool in_place : {false, true})
            for (const bool on_gpu : {false, true}) {
                std::vector<f16_t> bad = good;
                bad[static_cast<size_t>(place)] = to_f16(-INFINITY);
                MappedWeights files;
                if (in_place) files.holds = [](const Tensor&) { return true; };
                WeightStore weights(WeightPrecision::as_stored,
                                    on_gpu ? StandInMemory::source() : cpu_memory(), kThreads,
                                    files);
                SCOPED_TRACE(concat(place, in_place ? " in place" : "", on_gpu ? " GPU" : ""));
                try {
                    weights.matrix({matrix_of(bad)});
                    ADD_FAILURE() << "was taken";
                } catch (const Error& why) {
                    EXPECT_STREQ(why.what(), "weights: found a value that is not a finite number");
                }
                EXPECT_EQ(StandInMemory::active, 0);
            }
}

// The first piece has a NaN, all others' writes fail: the first piece's error counts.
TEST(WeightsPieces, ErrorIsTheFirstPieces) {
    std::vector<f16_t> stored = numbers(kRows * kSize);
    stored[3] = to_f16(NAN);
    for (int run = 0; run < 20; ++run) {
        WeightStore weights(WeightPrecision::as_stored, StandInMemory::source(0), kThreads);
        try {
            weights.matrix({matrix_of(stored)});
            FAIL() << "was taken";
        } catch (const Error& why) {
            EXPECT_NE(std::string(why.what()).find("not a finite number"), std::string::npos);
        }
    }
}

}  // namespace
}  // namespace hark::test
