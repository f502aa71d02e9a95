// Which rules of a grammar call which: what is recursive, and what is copied into its callers.
#pragma once

#include <vector>

#include "text/constrain/grammar.h"

namespace hark {

struct RuleCalls {
    // Throws Error for a rule that has no definition.
    explicit RuleCalls(const Grammar& grammar);

    std::vector<bool> reachable;  // per rule: from the root
    // Rules that are copied: Calls::expanded, not recursive, and either part of a repetition, whose
    // states should be of one rule, or small.
    std::vector<bool> expanded;
};

}  // namespace hark
