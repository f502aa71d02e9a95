#include "core/cli/stats_table.h"

#include <algorithm>
#include <cstdio>
#include <utility>

namespace hark {

void StatsTable::write_cells(const std::vector<std::string>& cells) {
    std::string line;
    for (size_t i = 0; i < cells.size(); ++i) {
        const size_t width = std::max<size_t>(columns_[i].size(), 8);
        const std::string fill(width - std::min(width, cells[i].size()), ' ');
        line += (i ? "  " : "") + (i ? fill + cells[i] : cells[i] + fill);
    }
    write_(line);
}

void StatsTable::row(const std::vector<std::string>& cells) {
    if (!std::exchange(has_heading_, true)) write_cells(columns_);
    write_cells(cells);
}

std::string stats_number(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.3f", value);
    return value > 0 ? text : "-";
}

}  // namespace hark
