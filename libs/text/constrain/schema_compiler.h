// From schemas to rules: a rule for each set of schemas that must hold together.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "text/constrain/json_grammar.h"
#include "text/constrain/schema_conjunction.h"

namespace hark {

class SchemaCompiler {
  public:
    using Json = nlohmann::ordered_json;
    using Expr = Grammar::Expr;

    // Keeps the reference.
    explicit SchemaCompiler(const Json& schema) : reader_(schema), json_(grammar_) {}

    Grammar compile();

  private:
    // A kind of names of properties that are not declared, and the schemas of their values.
    struct FreeNames {
        Expr name = 0;
        Conjunction value;
    };
    // An object's properties in their order.
    struct Declared {
        std::string name;
        Conjunction value;
        bool required = false;
    };

    // The call of the schemas' rule, which is defined later.
    Expr call(const Conjunction& all);
    Expr value(const Conjunction& all);
    Expr alternatives(const Conjunction& all, size_t item, size_t group);
    Expr leaf(const Conjunction& all);
    Expr listed_values(const Conjunction& all, const JoinedSchema& joined);
    Expr number(const JoinedSchema& joined);
    Expr string(const JoinedSchema& joined);
    Expr array(const Conjunction& all, const JoinedSchema& joined);
    Expr object(const Conjunction& all, const JoinedSchema& joined);
    std::vector<Declared> declared(const Conjunction& all, const JoinedSchema& joined);
    // `least`: properties that an object has, at least.
    std::vector<FreeNames> free_names(const Conjunction& all, const std::vector<Declared>& names,
                                      int64_t least);
    std::string place_of(const Conjunction& all);

    SchemaReader reader_;
    Grammar grammar_;
    JsonGrammar json_;
    std::map<std::vector<int64_t>, Grammar::Rule> rules_;
    std::vector<std::pair<Grammar::Rule, Conjunction>> undefined_;
    int64_t expansions_ = 0;
};

}  // namespace hark
