// Pieces of work on several threads.
#include "serve/worker.h"

#include <gtest/gtest.h>

#include <chrono>
#include <future>

namespace hark::serve {
namespace {

TEST(Worker, DoesAsManyPiecesAtOnceAsItHasThreads) {
    constexpr auto kLong = std::chrono::minutes(1);
    std::promise<void> first, second, met;
    Worker worker(2);
    // Each waits for the other.
    worker.add([&] {
        first.set_value();
        if (second.get_future().wait_for(kLong) == std::future_status::ready) met.set_value();
    });
    worker.add([&] {
        if (first.get_future().wait_for(kLong) == std::future_status::ready) second.set_value();
    });
    EXPECT_EQ(met.get_future().wait_for(kLong), std::future_status::ready);
}

}  // namespace
}  // namespace hark::serve
