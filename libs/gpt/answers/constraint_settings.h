// The flags of constrained answers, and a JSON line's fields.
#pragma once

#include <optional>
#include <string>

#include "core/cli/cli.h"
#include "core/json/json.h"
#include "gpt/answers/constraint.h"

namespace hark::gpt {

class ConstraintSettings {
  public:
    void flags(Flags& flags);
    void check() const;  // throws UsageError
    bool is_set() const;
    // Reads the file, if a flag names one. Throws Error that names it, for what is not supported
    // too.
    ConstraintRequest request() const;

  private:
    std::string form_, schema_file_, pattern_, grammar_file_;
};

// Takes `response_format`, as OpenAI's API has it, `regex` or `grammar` of a line. Returns what is
// wrong; empty: nothing.
std::string read_constraint(const nlohmann::ordered_json& line,
                            std::optional<ConstraintRequest>& request);

}  // namespace hark::gpt
