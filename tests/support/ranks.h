// Ranks of a test: copies of its process.
#pragma once

#include <unistd.h>

#include <cstdio>
#include <exception>
#include <functional>
#include <memory>
#include <string>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#endif

#include "core/error.h"
#include "kernels/comm/communicator.h"

namespace hark::test {

// Runs `body` in `size` processes; Error as spawn_local_ranks.
inline void in_ranks(int size, const std::function<void(std::unique_ptr<Transport>)>& body) {
    std::unique_ptr<Transport> links = spawn_local_ranks(size);
    if (!links) return;
    int status = 0;
    try {
        body(std::move(links));
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        status = 1;
    }
#ifdef __SANITIZE_ADDRESS__
    status += __lsan_do_recoverable_leak_check();
#endif
    ::_exit(status);  // the rest of the tests is the parent's
}

// The error of in_ranks(); empty if it throws none.
inline std::string ranks_error_of(int size,
                                  const std::function<void(std::unique_ptr<Transport>)>& body) {
    try {
        in_ranks(size, body);
    } catch (const Error& error) {
        return error.what();
    }
    return "";
}

}  // namespace hark::test
