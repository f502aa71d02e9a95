#include "text/constrain/json_grammar.h"

#include "core/error.h"
#include "text/constrain/json_number.h"

namespace hark {

template <class Make>
JsonGrammar::Expr JsonGrammar::rule(const std::string& name, const Make& make) {
    const auto known = rules_.find(name);
    if (known != rules_.end()) return grammar_.call(known->second);
    // Known before it is made: values are inside values.
    const Grammar::Rule made = grammar_.add_rule(name);
    rules_.emplace(name, made);
    grammar_.define(made, make());
    return grammar_.call(made);
}

JsonGrammar::Expr JsonGrammar::with_space(std::string_view mark) {
    return grammar_.sequence({grammar_.text(mark), grammar_.optional(grammar_.text(" "))});
}

JsonGrammar::Expr JsonGrammar::value() {
    return rule("any value", [&] {
        return grammar_.choice({object(), array(), string(), number(), boolean(), null()});
    });
}

JsonGrammar::Expr JsonGrammar::object() {
    return rule("any object", [&] {
        const Expr member = grammar_.sequence({string(), colon(), value()});
        const Expr more = grammar_.repeat(grammar_.sequence({comma(), member}), 0, kUnlimited);
        return grammar_.sequence({grammar_.text("{"),
                                  grammar_.optional(grammar_.sequence({member, more})),
                                  grammar_.text("}")});
    });
}

JsonGrammar::Expr JsonGrammar::array() {
    return rule("any list", [&] {
        const Expr more = grammar_.repeat(grammar_.sequence({comma(), value()}), 0, kUnlimited);
        return grammar_.sequence({grammar_.text("["),
                                  grammar_.optional(grammar_.sequence({value(), more})),
                                  grammar_.text("]")});
    });
}

JsonGrammar::Expr JsonGrammar::number() { return plain("any number", CharAutomaton(any_number())); }

JsonGrammar::Expr JsonGrammar::integer() {
    return plain("any integer", CharAutomaton(any_integer()));
}

JsonGrammar::Expr JsonGrammar::string(int64_t least, int64_t most) {
    return rule(concat("any string ", least, " ", most), [&] {
        const Expr quote = grammar_.text("\"");
        return grammar_.sequence(
            {quote, grammar_.repeat(any_json_char(grammar_), least, most), quote});
    });
}

JsonGrammar::Expr JsonGrammar::string(const std::string& key, const CharAutomaton& automaton) {
    return rule("string " + key, [&] {
        const Expr quote = grammar_.text("\"");
        return grammar_.sequence({quote, spelled(grammar_, automaton, json_char), quote});
    });
}

JsonGrammar::Expr JsonGrammar::plain(const std::string& key, const CharAutomaton& automaton) {
    return rule(key, [&] { return spelled(grammar_, automaton, utf8_char); });
}

Grammar json_grammar(bool lists) {
    Grammar grammar;
    JsonGrammar json(grammar);
    const Grammar::Rule root = grammar.add_rule("JSON");
    grammar.define(root, lists ? grammar.choice({json.object(), json.array()}) : json.object());
    grammar.set_root(root);
    return grammar;
}

}  // namespace hark
