// The table of --stats on stderr: a heading, then a row at a time.
#pragma once

#include <string>
#include <vector>

#include "core/cli.h"

namespace hark {

class StatsTable {
  public:
    // Keeps the reference.
    StatsTable(Console& console, std::vector<std::string> columns)
        : console_(console), columns_(std::move(columns)) {}

    // A cell per column. The heading is written before the first row.
    void row(const std::vector<std::string>& cells);

  private:
    void write(const std::vector<std::string>& cells);

    Console& console_;
    std::vector<std::string> columns_;
    bool has_heading_ = false;
};

// With three digits after the point; "-" for 0, which stands for an unknown value.
std::string stats_number(double value);

}  // namespace hark
