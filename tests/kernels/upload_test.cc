// Copies to a GPU go through pinned buffers, piece by piece.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "kernels/runtime/transfer.h"
#include "support/ops.h"

namespace hark::test {
namespace {

constexpr int64_t kMega = 1 << 20;

std::vector<uint8_t> random_bytes(int64_t n) {
    std::vector<uint8_t> bytes(static_cast<size_t>(n));
    uint32_t state = 1;
    for (uint8_t& byte : bytes)
        byte = static_cast<uint8_t>((state = state * 1664525u + 1013904223u) >> 24);
    return bytes;
}

TEST(Upload, EveryByteArrives) {
    TestDevice device(kCudaF32Case);
    if (!device) GTEST_SKIP() << device.why_not();
    Context& ctx = device.ctx();
    // On both sides of the pieces' limits, and from an address that is not aligned.
    for (const int64_t bytes :
         {int64_t{1}, kMega - 1, kMega, kMega + 1, 16 * kMega, 100 * kMega + 12345}) {
        const std::vector<uint8_t> from = random_bytes(bytes + 1);
        const Arena::Scope scope(ctx.arena);
        const Tensor to = ctx.arena.tensor(Dtype::u8, {bytes});
        ctx.arena.source().write(to.data, from.data() + 1, static_cast<size_t>(bytes));
        const Tensor back = to_host(ctx, to);
        EXPECT_EQ(std::memcmp(back.data, from.data() + 1, static_cast<size_t>(bytes)), 0) << bytes;
    }
}

// More threads than there are buffers, and pieces of all lengths up to three buffers.
TEST(Upload, ManyThreadsWriteAtOnce) {
    TestDevice device(kCudaF32Case);
    if (!device) GTEST_SKIP() << device.why_not();
    Context& ctx = device.ctx();
    constexpr int64_t kBytes = 200 * kMega + 77, kThreads = 48;
    const std::vector<uint8_t> from = random_bytes(kBytes);
    const Arena::Scope scope(ctx.arena);
    const Tensor to = ctx.arena.tensor(Dtype::u8, {kBytes});
    for (int run = 0; run < 2; ++run) {  // the second one takes the first one's buffers
        ctx.arena.source().write(to.data, std::vector<uint8_t>(kBytes).data(), kBytes);
        std::atomic<int64_t> next = 0;
        std::vector<std::jthread> threads;
        for (int64_t thread = 0; thread < kThreads; ++thread)
            threads.emplace_back([&, thread] {
                for (int64_t i = thread;; i += 7) {
                    const int64_t bytes = 1 + i * 7919 * 397 % (3 * kMega);
                    const int64_t begin = next.fetch_add(bytes);
                    if (begin >= kBytes) return;
                    ctx.arena.source().write(to.as<uint8_t>() + begin, from.data() + begin,
                                             static_cast<size_t>(std::min(bytes, kBytes - begin)));
                }
            });
        threads.clear();  // joins them
        const Tensor back = to_host(ctx, to);
        EXPECT_EQ(std::memcmp(back.data, from.data(), from.size()), 0) << run;
    }
}

// The current GPU of a thread that has done nothing on one is number 0, whose memory kernels of
// another do not read.
TEST(Upload, NewThreadsAllocateAndWriteOnTheSecondGpu) {
    TestDevice device(kCudaF32Case, 1);
    if (!device) GTEST_SKIP() << device.why_not();
    const std::vector<float> ones(1000, 1.0f);
    Tensor x;
    std::thread([&] {
        x = device.ctx().arena.tensor(Dtype::f32, {1, 1000});
        device.ctx().arena.source().write(x.data, ones.data(), x.bytes());
    }).join();
    scale_logits(device.ctx(), x, 2, 0);
    EXPECT_EQ(device.down(x), std::vector<float>(1000, 2.0f));
}

// An error reaches the caller, and is not the next write's.
TEST(Upload, RefusesTheHostsMemory) {
    TestDevice device(kCudaF32Case);
    if (!device) GTEST_SKIP() << device.why_not();
    Context& ctx = device.ctx();
    const std::vector<uint8_t> from = random_bytes(kMega);
    std::vector<uint8_t> host(from.size());
    EXPECT_THROW(ctx.arena.source().write(host.data(), from.data(), from.size()), Error);
    const Arena::Scope scope(ctx.arena);
    const Tensor to = ctx.arena.tensor(Dtype::u8, {kMega});
    ctx.arena.source().write(to.data, from.data(), from.size());
    EXPECT_EQ(std::memcmp(to_host(ctx, to).data, from.data(), from.size()), 0);
}

}  // namespace
}  // namespace hark::test
