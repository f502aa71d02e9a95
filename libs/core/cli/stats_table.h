// The tables of --stats on stderr and of other reports: a heading, then a row at a time.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/cli/cli.h"

namespace hark {

class StatsTable {
  public:
    // Keeps the reference.
    StatsTable(Console& console, std::vector<std::string> columns)
        : StatsTable([&console](const std::string& line) { console.table_line(line); },
                     std::move(columns)) {}
    StatsTable(std::function<void(const std::string& line)> write, std::vector<std::string> columns)
        : write_(std::move(write)), columns_(std::move(columns)) {}

    // A cell per column. The heading is written before the first row.
    void row(const std::vector<std::string>& cells);

  private:
    void write_cells(const std::vector<std::string>& cells);

    std::function<void(const std::string& line)> write_;
    std::vector<std::string> columns_;
    bool has_heading_ = false;
};

// With three digits after the point; "-" for 0, which stands for an unknown value.
std::string stats_number(double value);

}  // namespace hark
