// Expectations about texts, and about commands that fail.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "support/process.h"

namespace hark::test {

inline void expect_contains(const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' is not in: " << text;
}

// `part` is in what the command wrote to standard error.
inline void expect_fails(const ProcessResult& result, int exit_code, const std::string& part) {
    EXPECT_EQ(result.exit_code, exit_code) << result.err;
    expect_contains(result.err, part);
}

inline void expect_fails_without_output(const ProcessResult& result, int exit_code,
                                        const std::string& part) {
    expect_fails(result, exit_code, part);
    EXPECT_EQ(result.out, "");
}

}  // namespace hark::test
