#include "core/cli/suggest.h"

#include <algorithm>
#include <numeric>

#include "core/ascii.h"

namespace hark {
namespace {

std::string normalized(std::string_view text) {
    std::string result;
    for (const char c : text) result += c == '_' ? '-' : ascii_lower(c);
    return result;
}

}  // namespace

size_t edit_distance(std::string_view a_text, std::string_view b_text) {
    const std::string a = normalized(a_text), b = normalized(b_text);
    // Rows i-2, i-1 and i of the table of distances between prefixes.
    std::vector<size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
    std::iota(last.begin(), last.end(), size_t{0});
    for (size_t i = 1; i <= a.size(); ++i) {
        row[0] = i;
        for (size_t j = 1; j <= b.size(); ++j) {
            row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1])});
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = std::min(row[j], before[j - 2] + 1);
        }
        before.swap(last);
        last.swap(row);
    }
    return last[b.size()];
}

std::string nearest(const std::string& given, const std::vector<std::string>& known) {
    if (given.empty()) return "";
    std::vector<std::string> longer;
    for (const std::string& name : known)
        if (given.size() >= 2 && normalized(name).starts_with(normalized(given)))
            longer.push_back(name);
    // --lang: --language, though there is --language-windows too.
    const auto shortest = std::min_element(longer.begin(), longer.end(),
                                           [](auto& a, auto& b) { return a.size() < b.size(); });
    if (!longer.empty() && std::all_of(longer.begin(), longer.end(), [&](const std::string& name) {
            return name.starts_with(*shortest);
        }))
        return *shortest;
    std::string best;
    size_t best_distance = std::max<size_t>(1, given.size() / 3) + 1;
    for (const std::string& name : known) {
        const size_t distance = edit_distance(given, name);
        // A word of one letter is no near miss of another.
        if (distance < best_distance && distance < name.size()) {
            best = name;
            best_distance = distance;
        }
    }
    return best;
}

std::string did_you_mean(const std::string& given, const std::vector<std::string>& known) {
    const std::string name = nearest(given, known);
    return name.empty() ? "" : "; did you mean '" + name + "'?";
}

}  // namespace hark
