// What GPUs cost per hour.
#pragma once

#include <map>
#include <optional>
#include <string>

namespace hark::advice {

struct Prices {
    std::string source;                     // "Lambda, 2026-09-20", or the file
    std::map<std::string, double> dollars;  // per hour of one GPU, by its name in gpus.def

    std::optional<double> of(const std::string& gpu) const;
};

// Those of prices.def.
Prices stored_prices();

// Lines of a GPU's name and dollars per hour: "h100 4.29"; # begins a comment. The table that `hark
// lambda types` prints is taken too: an instance's type, its dollars, its number of GPUs. Of
// several prices the lowest counts; types of GPUs that gpus.def lacks are left out. Throws Error
// naming `where` and the line.
Prices parse_prices(const std::string& text, const std::string& where);

}  // namespace hark::advice
