#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/error.h"
#include "core/files/io.h"

namespace hark {

Interrupt::Interrupt() : event_(::eventfd(0, EFD_CLOEXEC)) {
    require(event_ >= 0, "cannot make an event: ", std::strerror(errno));
}

Interrupt::~Interrupt() { ::close(event_); }

void Interrupt::set() {
    const uint64_t one = 1;
    (void)!::write(event_, &one, sizeof one);  // fails only where it is set 2^64 times
}

bool Interrupt::wait_for(int fd) const {
    pollfd files[] = {{event_, POLLIN, 0}, {fd, POLLIN, 0}};
    while (::poll(files, 2, -1) < 0 && errno == EINTR) continue;
    return files[0].revents == 0;
}

}  // namespace hark
