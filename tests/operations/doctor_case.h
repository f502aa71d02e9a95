// Findings of a judge, by their checks.
#pragma once

#include <gtest/gtest.h>

#include "operations/doctor/finding.h"
#include "support/expect.h"

namespace hark::doctor {

class Findings {
  public:
    // What `judge(say)` says.
    template <class Judge>
    explicit Findings(const Judge& judge) {
        judge([this](const Finding& finding) { all.push_back(finding); });
    }

    // The only finding of a check.
    const Finding& of(const std::string& check) const {
        static const Finding kNone{.text = "no such finding"};
        const Finding* found = &kNone;
        for (const Finding& one : all)
            if (one.check == check) {
                EXPECT_EQ(found, &kNone) << check << " was said twice";
                found = &one;
            }
        EXPECT_NE(found, &kNone) << check << " was not said";
        return *found;
    }

    std::vector<Finding> all;
};

// The status, and parts of the text and of the remedy; without a remedy that is empty.
inline void expect_finding(const Finding& finding, Status status, const std::string& text,
                           const std::string& remedy = "") {
    EXPECT_STREQ(name_of(finding.status), name_of(status)) << finding.text;
    test::expect_contains(finding.text, text);
    if (remedy.empty())
        EXPECT_EQ(finding.remedy, "");
    else
        test::expect_contains(finding.remedy, remedy);
}

}  // namespace hark::doctor
