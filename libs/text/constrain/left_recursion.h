// Rules that call themselves before any symbol: an automaton would call them without end.
#pragma once

#include <string>
#include <vector>

#include "text/constrain/automaton.h"

namespace hark {

// Throws Error with the name of a rule that does so. `names` are those of the rules.
void check_left_recursion(const GrammarAutomaton& automaton, const std::vector<std::string>& names);

}  // namespace hark
