#include "operations/doctor/report.h"

#include <algorithm>
#include <set>

#include "core/cli/cli.h"
#include "core/cli/help.h"
#include "core/error.h"

namespace hark::doctor {
namespace {

constexpr size_t kNameColumn = 6, kTextColumn = 26, kRemedyColumn = 29;

// A terminal's colours by status.
constexpr const char* kColors[] = {"\x1b[32m", "\x1b[33m", "\x1b[1;31m", "\x1b[2m"};

std::string padded(std::string text, size_t columns) {
    text.resize(std::max(text.size() + 1, columns), ' ');
    return text;
}

std::string status_word(Status status, bool colors) {
    const std::string name = status == Status::fail ? "FAIL" : name_of(status);
    const std::string space(kNameColumn - name.size(), ' ');
    if (!colors) return name + space;
    return kColors[static_cast<size_t>(status)] + name + "\x1b[0m" + space;
}

}  // namespace

std::string as_text(const std::vector<Finding>& findings, bool colors) {
    std::string text;
    size_t counts[4] = {};
    for (const Finding& finding : findings) {
        ++counts[static_cast<size_t>(finding.status)];
        text += concat(status_word(finding.status, colors),
                       padded(finding.check, kTextColumn - kNameColumn),
                       wrapped(printable(finding.text), kTextColumn), "\n");
        if (!finding.remedy.empty())
            text += concat(std::string(kTextColumn, ' '), "-> ",
                           wrapped(printable(finding.remedy), kRemedyColumn), "\n");
    }
    const auto count = [&](Status status) { return counts[static_cast<size_t>(status)]; };
    return text + concat(count(Status::ok), " ok, ", count(Status::warn), " warn, ",
                         count(Status::fail), " FAIL, ", count(Status::skip), " skip\n");
}

std::string as_json(const std::vector<Finding>& findings) {
    nlohmann::ordered_json all = nlohmann::ordered_json::array();
    for (const Finding& finding : findings) all.push_back(to_json(finding));
    return json_text(all, 2) + "\n";
}

std::string failed_checks(const std::vector<Finding>& findings) {
    std::set<std::string> seen;
    std::string names;
    for (const Finding& finding : findings)
        if (finding.status == Status::fail && seen.insert(finding.check).second)
            names += concat(names.empty() ? "" : ", ", finding.check);
    return names;
}

}  // namespace hark::doctor
