// JSON values as grammar rules. The texts are compact: one space may follow a colon or a comma,
// and no other white space is between tokens, so that a model cannot write it without end.
#pragma once

#include <map>
#include <string>

#include "text/constrain/grammar.h"
#include "text/constrain/regular.h"

namespace hark {

// Adds each rule to a grammar once, when it is first used.
class JsonGrammar {
  public:
    using Expr = Grammar::Expr;

    // Keeps the reference.
    explicit JsonGrammar(Grammar& grammar) : grammar_(grammar) {}

    Expr colon() { return with_space(":"); }
    Expr comma() { return with_space(","); }
    Expr value();
    Expr object();
    Expr array();
    Expr boolean() { return grammar_.choice({grammar_.text("true"), grammar_.text("false")}); }
    Expr null() { return grammar_.text("null"); }
    Expr number();
    Expr integer();
    // A string of that number of characters; most: kUnlimited for any.
    Expr string(int64_t least = 0, int64_t most = kUnlimited);
    // A string whose text the automaton accepts; each character in one spelling (json_char()).
    // Equal keys are one rule.
    Expr string(const std::string& key, const CharAutomaton& automaton);
    // ASCII texts outside strings, such as numbers.
    Expr plain(const std::string& key, const CharAutomaton& automaton);

  private:
    Expr with_space(std::string_view mark);
    // The call of the rule; adds it with what `make` returns if it is not there.
    template <class Make>
    Expr rule(const std::string& name, const Make& make);

    Grammar& grammar_;
    std::map<std::string, Grammar::Rule> rules_;
};

// Any JSON object, or with `lists` also any list.
Grammar json_grammar(bool lists);

}  // namespace hark
