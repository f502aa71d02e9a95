// The user's own words and phrases.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "operations/redact/finding.h"

namespace hark::redact {

class WordList {
  public:
    // Adds a phrase of one word or more; one without letters and digits adds nothing.
    void add(std::string_view phrase);
    // The phrase of each line of a file; empty lines and lines that begin with # are left out.
    // Throws Error naming the file if it cannot be read, is not UTF-8, or has no phrase.
    void add_file(const std::string& file);
    bool empty() const { return phrases_.empty(); }

    // Whole words only, whatever their capitals and whatever is between them that is no letter and
    // no digit: "anna schmidt" is found in "Anna, Schmidt's". The longest phrase is taken.
    std::vector<Finding> find(std::string_view text) const;

  private:
    // Phrases by their first word, each as its words.
    std::map<std::string, std::vector<std::vector<std::string>>, std::less<>> phrases_;
};

}  // namespace hark::redact
