// hark-redact's options.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/cli/cli.h"
#include "operations/redact/finder.h"

namespace hark::redact {

struct RedactOptions {
    std::vector<std::string> words;  // files
    std::vector<std::string> kinds = {"email", "phone", "iban", "card", "date", "number"};
    std::string mute_list;  // a file; empty: none

    void flags(Flags& flags);
    void check() const;  // throws UsageError for a kind that there is not
    // Reads the lists of words. Throws Error naming the file.
    Finder finder() const;
    // One line: what was replaced, and where it says what is not found.
    std::string report(const std::map<Kind, int64_t>& counts) const;
};

}  // namespace hark::redact
