// Grammars in GBNF, the notation of llama.cpp.
#pragma once

#include <string_view>

#include "text/constrain/grammar.h"

namespace hark {

// NAME ::= alternatives with |, "texts", [classes] and [^classes] with ranges, ., (groups), * + ?
// {m} {m,} {m,n}, # comments, escapes \n \r \t \\ \" \[ \] \xHH \uHHHH \UHHHHHHHH. The text is the
// rule `root`. Throws Error with the line and what is wrong: unknown rules, a rule defined twice;
// left recursion is the automaton's error. Source: llama.cpp, grammars/README.md.
Grammar parse_gbnf(std::string_view text);

}  // namespace hark
