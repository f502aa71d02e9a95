// Findings as text or JSON.
#pragma once

#include <string>
#include <vector>

#include "operations/doctor/finding.h"

namespace hark::doctor {

// A line for each finding, one for its remedy, and a last line of counts.
std::string as_text(const std::vector<Finding>& findings, bool colors);
// An array of objects.
std::string as_json(const std::vector<Finding>& findings);

// "gpu.ecc, disk.here": the checks that failed, each once; empty if none did.
std::string failed_checks(const std::vector<Finding>& findings);

}  // namespace hark::doctor
