// A progress line on a terminal's stderr, shown only by the tool that ends the pipe.
#pragma once

#include <string>

#include "core/cli.h"

namespace hark {

class Progress {
  public:
    // Shown if stderr is a terminal, stdout is not a pipe, and neither --quiet nor --verbose is
    // given.
    explicit Progress(const Console& console);
    ~Progress();
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;

    // Replaces the line; at most ten times per second.
    void show(const std::string& line);
    // Writes to the terminal what stays there: the line is gone meanwhile and comes back below.
    template <class Write>
    void above(const Write& write) {
        clear();
        write();
        draw();
    }

  private:
    void clear();
    void draw();

    bool enabled_;
    std::string line_;  // empty: none is shown
    double last_ = 0;   // when it was shown, in seconds
};

}  // namespace hark
