// Which texts a grammar has.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "core/json/json.h"
#include "support/error_of.h"
#include "text/constrain/grammar_states.h"
#include "text/constrain/json_schema.h"

namespace hark::test {

class GrammarTexts {
  public:
    explicit GrammarTexts(const Grammar& grammar) : automaton_(grammar), states_(automaton_) {}

    bool has(std::string_view text) { return states_.can_end(after(text)); }
    // Whether a text begins so.
    bool begins(std::string_view text) { return after(text) != GrammarStates::kDead; }
    GrammarStates::State after(std::string_view text) {
        GrammarStates::State state = states_.start();
        for (const char c : text) state = states_.next(state, static_cast<unsigned char>(c));
        return state;
    }
    GrammarStates& states() { return states_; }

  private:
    GrammarAutomaton automaton_;
    GrammarStates states_;
};

inline GrammarTexts schema_texts(const std::string& schema) {
    return GrammarTexts(schema_grammar(nlohmann::ordered_json::parse(schema)));
}

struct SchemaCase {
    const char* schema;
    std::vector<const char*> values, others;
};

// Each value is a text of its schema, and none of the others is.
inline void expect_schemas(const std::vector<SchemaCase>& cases) {
    for (const SchemaCase& one : cases) {
        GrammarTexts texts = schema_texts(one.schema);
        for (const char* value : one.values)
            EXPECT_TRUE(texts.has(value)) << one.schema << ": " << value;
        for (const char* value : one.others)
            EXPECT_FALSE(texts.has(value)) << one.schema << ": " << value;
    }
}

inline std::string schema_error(const std::string& schema) {
    return error_of(
        [&] { GrammarAutomaton{schema_grammar(nlohmann::ordered_json::parse(schema))}; });
}

}  // namespace hark::test
