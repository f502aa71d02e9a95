#include "core/reserved_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "core/arena.h"
#include "core/error.h"

namespace hark {
namespace {

TEST(ReservedMemory, SlabsComeAndGo) {
    const auto memory = cpu_memory().reserve((size_t{1} << 40) + 1);  // more than any machine has
    const size_t slab = memory->slab();
    auto* const bytes = static_cast<std::byte*>(memory->data());
    EXPECT_EQ(reinterpret_cast<uintptr_t>(bytes) % slab, 0u);
    memory->commit(0, 2 * slab);
    std::memset(bytes, 7, 2 * slab);
    memory->commit(4 * slab, 5 * slab);
    std::memset(bytes + 4 * slab, 8, slab);
    memory->decommit(slab, 2 * slab);
    EXPECT_EQ(std::count(bytes, bytes + slab, std::byte{7}), static_cast<int64_t>(slab));
    EXPECT_EQ(bytes[5 * slab - 1], std::byte{8});
    memory->commit(slab, 2 * slab);
    bytes[slab] = std::byte{9};
    EXPECT_EQ(bytes[slab], std::byte{9});
    EXPECT_EQ(bytes[slab - 1], std::byte{7});
}

TEST(ReservedMemory, TooManyAddressesAreAnError) {
    EXPECT_THROW(reserve_host_memory(size_t{1} << 60), OutOfMemory);
}

}  // namespace
}  // namespace hark
