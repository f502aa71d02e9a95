// A progress line on a terminal's stderr, shown only by the tool that ends the pipe.
#pragma once

#include <string>

#include "core/cli.h"

namespace hark {

class Progress {
  public:
    // Shown where stderr is a terminal, stdout is not a pipe, and neither --quiet nor --verbose.
    explicit Progress(const Console& console);
    ~Progress();

    // Replaces the line; at most ten times a second.
    void show(const std::string& line);

  private:
    bool shown_ = false, enabled_;
    double last_ = 0;
};

}  // namespace hark
