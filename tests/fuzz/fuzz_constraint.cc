// JSON schemas, GBNF and regular expressions: the first byte tells which. What is accepted is an
// automaton whose states follow any bytes, and whose masks allow what the states do.
#include <cstdlib>

#include "fuzz/attempt.h"
#include "fuzz/golden.h"
#include "fuzz/target.h"
#include "gpt/answers/constraint.h"

using namespace hark;
using Kind = gpt::ConstraintRequest::Kind;

static std::vector<std::string> constraint_seeds() {
    std::vector<std::string> seeds;
    for (const char* schema :
         {R"({"type": "object", "properties": {"a": {"type": "integer", "minimum": -5}, "b/c": {}},
              "required": ["a"], "additionalProperties": {"type": "boolean"}, "maxProperties": 4})",
          R"({"anyOf": [{"$ref": "#/$defs/n"}, {"type": ["null", "string"], "maxLength": 3}],
              "$defs": {"n": {"type": "array", "items": {"$ref": "#/$defs/n"}, "minItems": 1}}})",
          R"({"type": "string", "pattern": "^[a-c]+(x|\\d{2,3})?$", "minLength": 2})",
          R"({"type": "string", "format": "date-time"})",
          R"({"type": "number", "exclusiveMinimum": 0.25, "maximum": 10, "multipleOf": 0.5})",
          R"({"allOf": [{"enum": [1, "a", null, {"x": []}]}, {"type": ["string", "object"]}]})",
          R"({"oneOf": [{"const": 1}, {"type": "object", "patternProperties": {"^p": {"const": 2}},
              "minProperties": 1}]})",
          R"({"prefixItems": [{"const": true}, false], "items": {"type": "null"}, "maxItems": 5})"})
        seeds.push_back(concat("s", schema));
    for (const char* grammar :
         {"root ::= \"a\" root \"b\" | [^c-e\\n]* # x\n",
          "root ::= (item \",\" )+ \"!\"?\nitem ::= .{2,3}",
          "root ::= x x | \"\\x41\\u00e9\"\nx ::= [0-9]{1,} | (\"(\" root \")\")"})
        seeds.push_back(concat("g", grammar));
    for (const char* pattern :
         {"(a|b)*c{2,3}?", "^[^\\d\\s-]+$|\\u{1F600}", "(?:x(?<n>y)?)+\\.", "\\p{L}\\P{N}.\\xe9"})
        seeds.push_back(concat("r", pattern));
    return seeds;
}

namespace {

const Tokenizer& tokenizer() {
    static const Tokenizer made = [] {
        const nlohmann::ordered_json file = fuzz::golden("model_tokenizers/smollm3.json");
        return Tokenizer::parse_json(file["tokenizer"].dump(), file["config"].dump(), "smollm3");
    }();
    return made;
}

void follow(TokenMasks& masks, std::string_view text) {
    TokenMasks::State state = masks.start();
    for (const int32_t id : tokenizer().encode(text)) {
        const bool allowed = allows(*masks.mask(state, false), id);
        state = masks.next(state, id);
        if (allowed != (state != GrammarStates::kDead)) std::abort();
        if (!allowed) return;
    }
}

}  // namespace

static int constraint_input(const uint8_t* data, size_t size) {
    if (size == 0) return 0;
    const std::string text(reinterpret_cast<const char*>(data) + 1,
                           std::min<size_t>(size, 400) - 1);
    const Kind kind = data[0] == 's' ? Kind::schema : data[0] == 'g' ? Kind::grammar : Kind::regex;
    fuzz::attempt([&] {
        static gpt::Constraints constraints(tokenizer(), tokenizer().special_ids().ends, nullptr);
        const auto masks = constraints.masks({kind, text}, false);
        for (const char* start :
             {"{\"a\": 1, \"p\": [null, 2.5]}", "[[], 17]", "\"2024-01-02T\"", "aaxbb,cc!", "acc"})
            follow(*masks, start);
        follow(*masks, text);
    });
    return 0;
}

// A grammar may have four million nodes (kMostNodes), and masks 128 MiB (kMostMaskBytes).
static const fuzz::Target kConstraint{"constraint", constraint_seeds, constraint_input,
                                      int64_t{256} << 20};
