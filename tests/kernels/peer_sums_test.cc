// Sums by kernels that access the ranks' memory. Two contexts of one GPU are two ranks; ranks_test
// has the processes of several GPUs.
#include "kernels/comm/peer_sums.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <thread>

#include "kernels/runtime/cuda_library.h"
#include "support/ops.h"

using namespace hark;
using namespace hark::test;

namespace {

constexpr int kRanks = 2;

// Two contexts of GPU 0 as ranks of one process.
class PeerSumsOfOneGpu : public testing::Test {
  protected:
    void SetUp() override {
        if (!devices_[0] || !devices_[1]) GTEST_SKIP() << devices_[0].why_not();
        for (int rank = 0; rank < kRanks; ++rank)
            memory_[rank] = cuda_peers().make_memory(ctx(rank), kRanks);
        stop_ = ctx(0).host_arena.tensor(Dtype::i32, {1}).as<int32_t>();
        *stop_ = 0;
    }

    Context& ctx(int rank) { return devices_[rank].ctx(); }
    Peers peers(int rank) const {
        Peers peers{.rank = rank, .size = kRanks, .stop = stop_};
        for (int r = 0; r < kRanks; ++r)
            peers.memory[r] = static_cast<std::byte*>(memory_[r].get());
        return peers;
    }
    // A rank's values, as the type holds them.
    static std::vector<float> values_of(int rank, int64_t n, Dtype dtype) {
        return TestDevice::rounded(random_values(n, 7 + static_cast<uint64_t>(rank)), dtype);
    }
    static std::vector<double> sums(int64_t n, Dtype dtype) {
        std::vector<double> sum(static_cast<size_t>(n));
        for (int rank = 0; rank < kRanks; ++rank) {
            const std::vector<float> values = values_of(rank, n, dtype);
            for (size_t i = 0; i < sum.size(); ++i) sum[i] += static_cast<double>(values[i]);
        }
        return sum;
    }
    std::vector<Tensor> up(int64_t n, Dtype dtype) {
        std::vector<Tensor> x;
        for (int rank = 0; rank < kRanks; ++rank)
            x.push_back(devices_[rank].up(values_of(rank, n, dtype), dtype, {n}));
        return x;
    }
    void expect_sums(const std::vector<Tensor>& x) {
        const Dtype dtype = x[0].dtype;
        const double half_ulp = dtype == Dtype::f32 ? 6e-8 : dtype == Dtype::f16 ? 4.9e-4 : 3.91e-3;
        const std::vector<float> first = devices_[0].down(x[0]);
        expect_near(first, sums(x[0].size(), dtype), half_ulp, 1e-4);
        EXPECT_EQ(devices_[1].down(x[1]), first) << "the ranks' bits differ";
    }

    TestDevice devices_[kRanks] = {TestDevice(kCudaF32Case), TestDevice(kCudaF32Case)};
    std::shared_ptr<void> memory_[kRanks];
    int32_t* stop_ = nullptr;
};

}  // namespace

// Sums in lines and in parts, of several calls of a kernel; numbers that fill no pack.
TEST_F(PeerSumsOfOneGpu, AreTheSumsInDouble) {
    for (const Dtype dtype : {Dtype::f32, Dtype::f16, Dtype::bf16})
        for (const int64_t n : {1, 7, 64, 1031, 4096, 140'001, 262'144, 1'048'577, 5'000'003}) {
            SCOPED_TRACE(concat(name_of(dtype), ", ", n));
            const Arena::Scope first(ctx(0).arena), second(ctx(1).arena);
            const std::vector<Tensor> x = up(n, dtype);
            for (int rank = 0; rank < kRanks; ++rank)
                cuda_peers().all_reduce(ctx(rank), peers(rank), x[static_cast<size_t>(rank)]);
            expect_sums(x);
        }
}

// A row's bits are the same alone and among others, whichever kernel adds it up.
TEST_F(PeerSumsOfOneGpu, DoNotDependOnOtherRows) {
    constexpr int64_t kWidth = 4096, kRows = 300;
    const auto bits = [&](int64_t rows) {
        const std::vector<Tensor> x = up(rows * kWidth, Dtype::bf16);
        for (int rank = 0; rank < kRanks; ++rank)
            cuda_peers().all_reduce(ctx(rank), peers(rank), x[static_cast<size_t>(rank)]);
        std::vector<float> found = devices_[0].down(x[0]);
        devices_[1].down(x[1]);
        found.resize(kWidth);
        return found;
    };
    EXPECT_EQ(bits(1), bits(kRows));
}

// Recordings of sums of several sizes, replayed in turn. After the first sum both ranks have the
// same values, which each further one doubles.
TEST_F(PeerSumsOfOneGpu, AreReplayed) {
    const std::vector<Tensor> small = up(64, Dtype::f32), large = up(1'000'000, Dtype::f32);
    std::shared_ptr<void> graphs[kRanks];
    for (size_t rank = 0; rank < kRanks; ++rank) {
        Context& recorded = ctx(static_cast<int>(rank));
        graphs[rank] = cuda_runtime().capture(recorded, [&] {
            for (const Tensor& x : {small[rank], large[rank], small[rank]})
                cuda_peers().all_reduce(recorded, peers(static_cast<int>(rank)), x);
        });
    }
    constexpr int kReplays = 50;
    for (int i = 0; i < kReplays; ++i)
        for (int rank = 0; rank < kRanks; ++rank)
            cuda_runtime().replay(ctx(rank), graphs[rank].get());
    const auto expect_doubled = [&](const std::vector<Tensor>& x, int times) {
        std::vector<double> expected = sums(x[0].size(), Dtype::f32);
        for (double& value : expected) value = std::ldexp(value, times);
        const std::vector<float> found = devices_[0].down(x[0]);
        expect_near(found, expected, 6e-8, std::ldexp(1e-4, times));
        EXPECT_EQ(devices_[1].down(x[1]), found);
    };
    expect_doubled(small, 2 * kReplays - 1);
    expect_doubled(large, kReplays - 1);
}

// A rank whose peer never comes.
TEST_F(PeerSumsOfOneGpu, EndWhenTheHostSaysSo) {
    for (const int64_t n : {64, 1'000'000}) {
        const std::vector<Tensor> x = up(n, Dtype::f32);
        std::thread host([&] {
            std::this_thread::sleep_for(std::chrono::milliseconds(100));
            std::atomic_ref(*stop_).store(1);
        });
        cuda_peers().all_reduce(ctx(0), peers(0), x[0]);
        cuda_runtime().synchronize(ctx(0));
        host.join();
        EXPECT_EQ(*stop_, 1);
        *stop_ = 0;
    }
}
