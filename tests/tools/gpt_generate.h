// gpt-generate with the demo model, as its tests run it.
#pragma once

#include <gtest/gtest.h>

#include <sstream>

#include "core/json/json.h"
#include "support/expect.h"
#include "support/process.h"

namespace hark::test {

using nlohmann::json;

inline const std::string kGptDemo = source_dir() / "models/gpt-demo";

using Arguments = std::vector<std::string>;

inline Arguments joined(Arguments first, const Arguments& second) {
    first.insert(first.end(), second.begin(), second.end());
    return first;
}

inline ProcessResult generate(std::vector<std::string> arguments, const std::string& input) {
    arguments.insert(arguments.begin(), {"--model", kGptDemo, "--threads", "1"});
    return run_tool("gpt-generate", arguments, input);
}

inline std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> lines;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    return lines;
}

inline json golden_case(int i) {
    return json::parse(read_text(source_dir() / "tests/golden/gpt.json"))["cases"][i];
}

// An answer without the fields that no two runs have the same.
inline json untimed(const std::string& line) {
    json answer = json::parse(line);
    EXPECT_EQ(answer.erase("seconds_to_first_token") + answer.erase("tokens_per_second"), 2u);
    return answer;
}

inline const std::vector<std::string> kGreedy = {"--temperature", "0", "--max-tokens", "20"};

inline std::vector<std::string> greedy_and(std::vector<std::string> more) {
    more.insert(more.end(), kGreedy.begin(), kGreedy.end());
    return more;
}

}  // namespace hark::test
