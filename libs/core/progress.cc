#include "core/progress.h"

#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>

namespace hark {

Progress::Progress(const Console& console) {
    struct stat out {};
    const bool ends_the_pipe = ::fstat(STDOUT_FILENO, &out) == 0 && !S_ISFIFO(out.st_mode);
    const bool shows_well = ends_the_pipe && ::isatty(STDERR_FILENO) && !console.verbose;
    enabled_ = console.progress == "always" || (console.progress == "auto" && shows_well);
    if (console.quiet) enabled_ = false;
}

Progress::~Progress() { clear(); }

void Progress::show(const std::string& line) {
    if (!enabled_) return;
    const double now =
        std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
    if (now - last_ < 0.1) return;
    last_ = now;
    line_ = line;
    draw();
}

void Progress::clear() {
    if (line_.empty()) return;
    std::fputs("\r\033[K", stderr);
    std::fflush(stderr);
}

void Progress::draw() {
    if (line_.empty()) return;
    std::fprintf(stderr, "\r\033[K%s", line_.c_str());
    std::fflush(stderr);
}

}  // namespace hark
