// E-mail addresses, written and said in English.
#pragma once

#include <string_view>
#include <vector>

#include "operations/redact/finding.h"
#include "text/regex.h"

namespace hark::redact {

class EmailFinder {
  public:
    EmailFinder();

    // Of valid UTF-8: anna@example.org, "anna dot schmidt at example dot com", "a n n a at ...",
    // "anna forty two at ...", "anna [at] example [dot] com". What is said must end in a common
    // last part. "works at Example.com" is none: after "works", "buy", "us" and others a website
    // is named.
    std::vector<Finding> find(std::string_view text) const;

  private:
    Regex written_, at_host_;
};

}  // namespace hark::redact
