// What is set of the sampler: by flags, by a model's files, by a line of JSON. The rest keeps its
// default.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "core/cli/cli.h"
#include "core/json/json.h"
#include "gpt/families/sampling_defaults.h"
#include "gpt/sampling/sampler.h"

namespace hark::gpt {

// What is wrong with `value` where a number from min to max is expected, a whole one if `whole`;
// empty: nothing.
std::string wrong_number(const char* name, const nlohmann::ordered_json& value, double min,
                         double max, bool whole);

class SamplerSettings {
  public:
    void flags(Flags& flags);
    void check() const;  // throws UsageError

    // Takes a line's fields: the flags' names with "_". null is no value. Returns what is wrong;
    // empty: nothing.
    std::string read(const nlohmann::ordered_json& line);
    // Takes a model's values. Throws Error that begins with `where` if one is out of range.
    void read(const SamplingDefaults& defaults, const std::string& where);

    // Replaces what is set here.
    void apply_to(SamplerOptions& options) const;

  private:
    static constexpr size_t kNumbers = 13, kWholeNumbers = 3;

    std::array<std::optional<double>, kNumbers> numbers_;
    std::array<std::optional<int64_t>, kWholeNumbers> whole_numbers_;
    std::vector<std::string> bias_texts_;  // ID=V, of the flag
    std::optional<LogitBias> bias_;        // of a line
};

}  // namespace hark::gpt
