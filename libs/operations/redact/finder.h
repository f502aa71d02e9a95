// Finds personal data in the text of a transcript.
#pragma once

#include <string_view>
#include <vector>

#include "operations/redact/emails.h"
#include "operations/redact/finding.h"
#include "operations/redact/word_list.h"
#include "text/regex.h"

namespace hark::redact {

class Finder {
  public:
    // Looks for these kinds, and for what is in `words`.
    Finder(std::vector<Kind> kinds, WordList words);

    // What is to be replaced in valid UTF-8, in its order and without overlaps. E-mail addresses
    // and dates are found as they are written and as they are said in English; months with a day
    // in figures also in German, French, Spanish, Italian and Portuguese.
    std::vector<Finding> find(std::string_view text) const;

  private:
    std::vector<Kind> kinds_;
    WordList words_;
    EmailFinder emails_;
    Regex numeric_date_, spaced_date_, labelled_date_, named_date_, foreign_date_;
};

}  // namespace hark::redact
