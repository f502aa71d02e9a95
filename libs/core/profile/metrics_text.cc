#include "core/profile/metrics_text.h"

#include <algorithm>

#include "core/error.h"
#include "core/shortest.h"

namespace hark {

std::string metric_label(const char* name, std::string_view value) {
    std::string label = concat(name, "=\"");
    for (const char c : value) {
        if (c == '\\' || c == '"') label += '\\';
        label += c == '\n' ? ' ' : c;
    }
    return label + '"';
}

void MetricsText::add(const std::string& name, const char* type, double value,
                      const std::string& labels, const char* suffix) {
    auto found = std::find_if(metrics_.begin(), metrics_.end(),
                              [&](const Metric& one) { return one.name == name; });
    if (found == metrics_.end()) found = metrics_.insert(found, {name, type, ""});
    const char* const comma = labels_.empty() || labels.empty() ? "" : ",";
    const std::string all = concat(labels_, comma, labels);
    found->lines += concat("hark_", name, suffix, all.empty() ? "" : "{" + all + "}", " ",
                           shortest(value), "\n");
}

std::string MetricsText::text() const {
    std::string text;
    for (const Metric& metric : metrics_)
        text += concat("# TYPE hark_", metric.name, " ", metric.type, "\n", metric.lines);
    return text;
}

}  // namespace hark
