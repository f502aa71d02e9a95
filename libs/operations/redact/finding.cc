#include "operations/redact/finding.h"

#include <algorithm>
#include <cctype>

namespace hark::redact {

std::string_view name_of(Kind kind) {
    constexpr std::string_view kNames[] = {"listed", "email", "iban",  "card",
                                           "date",   "phone", "number"};
    return kNames[static_cast<size_t>(kind)];
}

std::string label_of(Kind kind) {
    std::string label = "[";
    for (const char c : name_of(kind)) label += static_cast<char>(std::toupper(c));
    return label + "]";
}

std::vector<Finding> merged(std::vector<Finding> findings) {
    std::sort(findings.begin(), findings.end(),
              [](const Finding& a, const Finding& b) { return a.begin < b.begin; });
    std::vector<Finding> all;
    for (const Finding& finding : findings) {
        if (all.empty() || finding.begin >= all.back().end) {
            all.push_back(finding);
            continue;
        }
        all.back().end = std::max(all.back().end, finding.end);
        all.back().kind = std::min(all.back().kind, finding.kind);
    }
    return all;
}

}  // namespace hark::redact
