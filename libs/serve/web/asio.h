// The parts of Boost.Asio that a coroutine of a connection needs, and its durations.
#pragma once

// clang-format off
#include <utility>  // before Boost 1.74's awaitable.hpp, which needs it
#include <boost/asio/awaitable.hpp>
// clang-format on

#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>

namespace hark::serve {

inline std::chrono::steady_clock::duration duration_of(double seconds) {
    return std::chrono::duration_cast<std::chrono::steady_clock::duration>(
        std::chrono::duration<double>(seconds));
}

}  // namespace hark::serve
