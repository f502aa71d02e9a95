// Large copies to a GPU go through pinned buffers, piece by piece.
#include <gtest/gtest.h>

#include <cstring>

#include "kernels/runtime/transfer.h"
#include "support/ops.h"

namespace hark::test {
namespace {

TEST(Upload, EveryByteArrives) {
    TestDevice device(kCudaF32Case);
    if (!device) GTEST_SKIP() << device.why_not();
    Context& ctx = device.ctx();
    constexpr int64_t kMega = 1 << 20;
    // On both sides of the pieces' limits, and from an address that is not aligned.
    for (const int64_t bytes :
         {int64_t{1}, 4 * kMega - 1, 4 * kMega, 16 * kMega, 16 * kMega + 1, 100 * kMega + 12345}) {
        std::vector<uint8_t> from(static_cast<size_t>(bytes) + 1);
        uint32_t state = 1;
        for (uint8_t& byte : from)
            byte = static_cast<uint8_t>((state = state * 1664525u + 1013904223u) >> 24);
        const Arena::Scope scope(ctx.arena);
        const Tensor to = ctx.arena.tensor(Dtype::u8, {bytes});
        ctx.arena.source().write(to.data, from.data() + 1, static_cast<size_t>(bytes));
        const Tensor back = to_host(ctx, to);
        EXPECT_EQ(std::memcmp(back.data, from.data() + 1, static_cast<size_t>(bytes)), 0) << bytes;
    }
}

}  // namespace
}  // namespace hark::test
