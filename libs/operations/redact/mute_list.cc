#include "operations/redact/mute_list.h"

#include <algorithm>
#include <cstdio>

namespace hark::redact {

void MuteList::add(double begin, double end) {
    parts_.emplace_back(std::max(0.0, begin - kMutePadding), end + kMutePadding);
}

std::string MuteList::filter() const {
    std::vector<std::pair<double, double>> parts = parts_;
    std::sort(parts.begin(), parts.end());
    std::vector<std::pair<double, double>> joined;
    for (const auto& part : parts) {
        if (joined.empty() || part.first > joined.back().second)
            joined.push_back(part);
        else
            joined.back().second = std::max(joined.back().second, part.second);
    }
    if (joined.empty()) return "anull\n";
    std::string text = "volume=0:enable='";
    for (size_t i = 0; i < joined.size(); ++i) {
        char part[80];
        std::snprintf(part, sizeof part, "%sbetween(t,%.3f,%.3f)", i > 0 ? "+" : "",
                      joined[i].first, joined[i].second);
        text += part;
    }
    return text + "'\n";
}

}  // namespace hark::redact
