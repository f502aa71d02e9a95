// JSON schemas of objects and lists, and of several schemas together.
#include <gtest/gtest.h>

#include "support/expect.h"
#include "support/grammar_texts.h"

using namespace hark::test;

TEST(JsonSchema, ObjectsHaveTheirPropertiesInTheSchemasOrder) {
    expect_schemas({
        {R"({"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"},
             "c": {"type": "null"}}, "required": ["b"]})",
         {R"({"b":"x"})", R"({"a":1,"b":"x"})", R"({"b": "x", "c": null})",
          R"({"a": 1, "b": "x", "c": null})"},
         {"{}", R"({"a":1})", R"({"b":"x","a":1})", R"({"b":1})", R"({"b":"x","d":1})",
          R"({"b":"x",})", R"({"b":"x","b":"x"})"}},
        {R"({"properties": {"a": {"type": "integer"}}})", {"{}", R"({"a":1})"}, {R"({"a":"x"})"}},
        {R"({"type": "object", "properties": {}})", {"{}"}, {R"({"a":1})"}},
        {R"({"type": "object", "required": ["x y", "\""]})",
         {R"({"x y":1,"\"":2})", R"({"x y":1,"\"":2,"z":3})"},
         {"{}", R"({"x y":1})", R"({"z":3})"}},
        {R"({"type": "object", "properties": {"a": false, "b": true}})",
         {"{}", R"({"b":[1]})"},
         {R"({"a":1})"}},
    });
}

TEST(JsonSchema, FreePropertiesFollow) {
    expect_schemas({
        {R"({"type": "object", "properties": {"a": {"type": "integer"}},
             "additionalProperties": {"type": "boolean"}})",
         {"{}", R"({"a":1})", R"({"b":true})", R"({"a":1,"b":true,"ab":false,"":true})",
          R"({"\"":true})"},
         {R"({"a":true})", R"({"b":1})", R"({"b":true,"a":1})", R"({"\u0061":true})"}},
        {R"({"type": "object", "additionalProperties": {"type": "integer"}})",
         {"{}", R"({"a":1,"b":2})", R"({"\u0061":1})"},
         {R"({"a":"x"})"}},
        {R"({"type": "object", "additionalProperties": false})", {"{}"}, {R"({"a":1})"}},
        {R"({"type": "object", "patternProperties": {"^n_": {"type": "integer"}},
             "additionalProperties": {"type": "string"}})",
         {R"({"n_a":1})", R"({"x":"y","n_":2})"},
         {R"({"n_a":"x"})", R"({"x":1})"}},
        {R"({"type": "object", "patternProperties": {"a": {"type": "integer"}, "b": {"minimum": 5}},
             "additionalProperties": false})",
         {R"({"xa":1})", R"({"b":7})", "{}"},
         {R"({"x":1})", R"({"a":"x"})", R"({"b":4})"}},
        {R"({"type": "object", "properties": {"n_1": {"minimum": 5}},
             "patternProperties": {"^n_": {"type": "integer"}}})",
         {R"({"n_1":5})", R"({"n_2":1})"},
         {R"({"n_1":1})", R"({"n_1":5.5})", R"({"x":1})"}},
    });
}

TEST(JsonSchema, PropertiesAreCounted) {
    const std::string three =
        R"("properties": {"a": {"const": 1}, "b": {"const": 2}, "c": {"const": 3}})";
    expect_schemas({
        {(R"({"type": "object", "minProperties": 2, )" + three + "}").c_str(),
         {R"({"a":1,"b":2})", R"({"b":2,"c":3})", R"({"a":1,"b":2,"c":3})"},
         {"{}", R"({"a":1})", R"({"c":3})"}},
        {(R"({"type": "object", "maxProperties": 1, )" + three + "}").c_str(),
         {"{}", R"({"a":1})", R"({"c":3})"},
         {R"({"a":1,"b":2})"}},
        {(R"({"type": "object", "minProperties": 1, "maxProperties": 2, "required": ["b"], )" +
          three + "}")
             .c_str(),
         {R"({"b":2})", R"({"a":1,"b":2})"},
         {"{}", R"({"a":1,"b":2,"c":3})"}},
        {R"({"type": "object", "minProperties": 1, "maxProperties": 3,
             "additionalProperties": {"const": 0}})",
         {R"({"x":0})", R"({"x":0,"y":0,"z":0})"},
         {"{}", R"({"x":0,"y":0,"z":0,"w":0})"}},
        // A minimum that the declared ones cannot reach needs free ones.
        {R"({"type": "object", "properties": {}, "minProperties": 1})", {R"({"a":1})"}, {"{}"}},
        // Free names may be the same, so only one of them counts.
        {R"({"type": "object", "minProperties": 2, "properties": {"a": {"const": 1}},
             "additionalProperties": {"const": 0}})",
         {R"({"a":1,"x":0})", R"({"a":1,"x":0,"x":0})"},
         {R"({"x":0,"x":0})", R"({"a":1})"}},
    });
}

TEST(JsonSchema, ArrayKeywords) {
    expect_schemas({
        {R"({"type": "array", "items": {"type": "integer"}})",
         {"[]", "[1]", "[1, 2,3]"},
         {"[\"a\"]"}},
        {R"({"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 3})",
         {"[1,2]", "[1,2,3]"},
         {"[]", "[1]", "[1,2,3,4]"}},
        {R"({"type": "array", "maxItems": 0})", {"[]"}, {"[1]"}},
        {R"({"type": "array", "minItems": 1})", {"[null]", "[1,2,3]"}, {"[]"}},
        {R"({"type": "array", "items": false})", {"[]"}, {"[1]"}},
        {R"({"prefixItems": [{"type": "integer"}, {"type": "string"}]})",
         {"[]", "[1]", "[1,\"a\"]"},
         {"[\"a\"]", "[1,2]", "[1,\"a\",3]"}},
        {R"({"type": "array", "prefixItems": [{"type": "integer"}], "items": {"type": "null"}})",
         {"[]", "[1]", "[1,null,null]"},
         {"[null]", "[1,2]"}},
        {R"({"type": "array", "prefixItems": [{"type": "integer"}], "minItems": 2, "maxItems": 3})",
         {"[1,\"x\"]", "[1,2,{}]"},
         {"[1]", "[\"x\",1]", "[1,2,3,4]"}},
        {R"({"type": "array", "prefixItems": [{"const": 1}, {"const": 2}, {"const": 3}],
             "items": false, "minItems": 1, "maxItems": 2})",
         {"[1]", "[1,2]"},
         {"[]", "[1,2,3]"}},
        {R"({"type": "array", "uniqueItems": false})", {"[1,1]"}, {}},
    });
}

TEST(JsonSchema, AlternativesAndConjunctions) {
    expect_schemas({
        {R"({"anyOf": [{"type": "integer"}, {"type": "string", "minLength": 2}]})",
         {"1", "\"ab\""},
         {"\"a\"", "null"}},
        {R"({"type": "string", "anyOf": [{"minLength": 3}, {"maxLength": 1}]})",
         {"\"\"", "\"a\"", "\"abc\""},
         {"\"ab\"", "1"}},
        {R"({"anyOf": [{"properties": {"a": {"type": "integer"}}, "required": ["a"]},
                       {"properties": {"b": {"type": "integer"}}, "required": ["b"]}],
             "properties": {"c": {"type": "null"}}})",
         {R"({"c":null,"a":1})", R"({"a":1})", R"({"b":2})"},
         {"{}", R"({"c":null})", R"({"a":"x"})"}},
        {R"({"allOf": [{"type": "integer"}, {"minimum": 2}, {"maximum": 4}]})",
         {"2", "4"},
         {"1", "5"}},
        {R"({"allOf": [{"properties": {"a": {"type": "integer"}}, "required": ["a"]},
                       {"properties": {"b": {"type": "null"}, "a": {"minimum": 3}}}]})",
         {R"({"a":3})", R"({"a":4,"b":null})"},
         {R"({"a":2})", R"({"b":null})"}},
        {R"({"allOf": [{"type": "array", "items": {"type": "integer"}}, {"items": {"maximum": 3}},
                       {"minItems": 1}]})",
         {"[1,3]"},
         {"[]", "[4]", "[\"a\"]"}},
        {R"({"allOf": [{"pattern": "a"}, {"pattern": "b"}], "type": "string"})",
         {"\"ab\"", "\"xbya\""},
         {"\"a\"", "\"b\""}},
        {R"({"allOf": [{"anyOf": [{"const": 1}, {"const": 2}]},
                       {"anyOf": [{"const": 2}, {"const": 3}]}]})",
         {"2"},
         {"1", "3"}},
        {R"({"anyOf": [{"const": 1}, false]})", {"1"}, {"2"}},
    });
}

TEST(JsonSchema, OneOfNeedsAlternativesThatExcludeOneAnother) {
    expect_schemas({
        {R"({"oneOf": [{"type": "integer"}, {"type": "string"}]})", {"1", "\"a\""}, {"null"}},
        {R"({"oneOf": [{"const": 1}, {"enum": [2, 3]}]})", {"1", "3"}, {"4"}},
        {R"({"oneOf": [{"type": "number", "maximum": 1},
                       {"type": "number", "exclusiveMinimum": 1}]})",
         {"1", "1.5"},
         {"\"a\""}},
        {R"({"oneOf": [{"type": "string", "maxLength": 1}, {"type": "string", "minLength": 2}]})",
         {"\"a\"", "\"ab\""},
         {}},
        {R"({"oneOf": [{"type": "string", "pattern": "^a"}, {"type": "string", "pattern": "^b"}]})",
         {"\"ax\"", "\"b\""},
         {"\"c\""}},
        {R"({"oneOf": [
             {"type": "object", "required": ["t"],
              "properties": {"t": {"const": "a"}, "x": {"type": "integer"}}},
             {"type": "object", "required": ["t"],
              "properties": {"t": {"const": "b"}, "y": {"type": "integer"}}}]})",
         {R"({"t":"a","x":1})", R"({"t":"b","y":1})"},
         {R"({"t":"a","y":1})", R"({"t":"c"})"}},
        {R"({"oneOf": [
             {"type": "object", "properties": {"a": {}}, "required": ["a"]},
             {"type": "object", "properties": {"b": {}}, "additionalProperties": false}]})",
         {R"({"a":1})", R"({"b":1})"},
         {R"({"a":1,"b":1})"}},
        {R"({"oneOf": [{"type": "array", "maxItems": 1}, {"type": "array", "minItems": 2}]})",
         {"[]", "[1,2]"},
         {}},
    });
    for (const char* schema :
         {R"({"oneOf": [{"type": "integer"}, {"type": "number"}]})",
          R"({"oneOf": [{"minLength": 2}, {"minimum": 5}]})",
          R"({"oneOf": [{"type": "object"}, {"type": "object", "required": ["a"]}]})",
          R"({"type": "string", "oneOf": [{"format": "date"}, {"format": "uuid"}]})"})
        expect_contains(schema_error(schema),
                        "schema: #/oneOf: it is not certain that no value fits both alternative 0 "
                        "and 1; write anyOf");
}
