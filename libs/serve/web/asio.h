// The parts of Boost.Asio that a coroutine of a connection needs.
#pragma once

// clang-format off
#include <utility>  // before Boost 1.74's awaitable.hpp, which needs it
#include <boost/asio/awaitable.hpp>
// clang-format on

#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
