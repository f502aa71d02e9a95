// JSON schemas: each keyword's values that a text may be, values that it may not, and what is
// refused by name. Objects, lists and alternatives: json_schema_inside_test.cc.
#include "text/constrain/json_schema.h"

#include <gtest/gtest.h>

#include "support/expect.h"
#include "support/grammar_texts.h"
#include "text/constrain/json_grammar.h"

using namespace hark;
using namespace hark::test;

TEST(JsonSchema, Types) {
    expect_schemas({
        {"true", {"1", "\"a\"", "null", "{}", "[1, {}]", "-0.5e3"}, {"", "a", "1 ", " 1"}},
        {"{}", {"1", "{\"a\": [true]}"}, {"tru"}},
        {R"({"type": "null"})", {"null"}, {"0", "false", "\"\"", "{}", "[]"}},
        {R"({"type": "boolean"})", {"true", "false"}, {"1", "null", "\"true\""}},
        {R"({"type": "integer"})", {"0", "-12", "7"}, {"1.5", "1.0", "01", "\"1\"", "null"}},
        {R"({"type": "number"})", {"0", "-1.5", "2e10"}, {"1.", ".5", "\"1\"", "NaN"}},
        {R"({"type": "string"})", {"\"\"", "\"a\""}, {"a", "1", "\"", "\"a"}},
        {R"({"type": "object"})", {"{}", "{\"a\":1, \"b\":{}}"}, {"[]", "{\"a\"}", "{1:2}", "{,}"}},
        {R"({"type": "array"})", {"[]", "[1,\"a\", [null]]"}, {"{}", "[1", "[,]", "[1,]"}},
        {R"({"type": ["integer", "null"]})", {"5", "null"}, {"5.5", "\"a\""}},
        {R"({"type": "string", "nullable": true})", {"\"a\"", "null"}, {"1"}},
        {R"({"type": "string", "title": "t", "description": "d", "default": 1, "examples": [1],
            "$comment": "c", "deprecated": true, "readOnly": true, "x-mine": {},
            "$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "https://a.b/c"})",
         {"\"a\""},
         {"1"}},
    });
}

TEST(JsonSchema, WhiteSpaceIsOneSpaceAfterACommaOrAColon) {
    expect_schemas({{R"({"type": "object", "properties": {"a": {"type": "array"}}})",
                     {"{\"a\": [1, 2]}", "{\"a\":[1,2]}"},
                     {"{\"a\":  []}", "{ \"a\":[]}", "{\"a\" :[]}", "{\"a\":[1 ,2]}",
                      "{\"a\":[]}\n", "{\"a\":\n[]}", "{\"a\":[ ]}"}}});
}

TEST(JsonSchema, StringsAreValidUtf8AndValidJson) {
    expect_schemas({{R"({"type": "string"})",
                     {"\"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\"", R"("\" \\ \/ \b \f \n \r \t")",
                      R"("\u00e9")", R"("\uD83D\ude00")", "\"\x7F\""},
                     {"\"\x1F\"", "\"\n\"", "\"\xC3\"", "\"\xFF\"", "\"\xC0\xAF\"",
                      "\"\xED\xA0\x80\"", "\"\xF4\x90\x80\x80\"", "\"\xE0\x80\x80\"", R"("\x")",
                      R"("\u12")", R"("\uD83D")", R"("\uDE00")", R"("\uD83Dx")", R"("\")"}}});
}

TEST(JsonSchema, StringKeywords) {
    expect_schemas({
        {R"({"type": "string", "minLength": 2})", {"\"ab\"", "\"abcdef\""}, {"\"\"", "\"a\""}},
        {R"({"type": "string", "maxLength": 2})", {"\"\"", "\"ab\""}, {"\"abc\""}},
        // Code points are counted, whatever their bytes.
        {R"({"type": "string", "minLength": 2, "maxLength": 2})",
         {"\"\xF0\x9F\x98\x80\xC3\xA9\"", R"("\uD83D\uDE00\n")", R"("\u0041b")"},
         {"\"\xF0\x9F\x98\x80\"", R"("\uD83D\uDE00")"}},
        {R"({"minLength": 1.0, "type": "string"})", {"\"a\""}, {"\"\""}},
        {R"({"type": "string", "maxLength": 0})", {"\"\""}, {"\"a\""}},
        {R"({"type": "string", "pattern": "b"})", {"\"abc\"", "\"b\""}, {"\"\"", "\"ac\""}},
        {R"({"type": "string", "pattern": "^a+$"})", {"\"aa\""}, {"\"aab\"", "\"baa\""}},
        {R"({"type": "string", "pattern": "^[^a]$"})",
         {"\"b\"", "\"\xC3\xA9\"", R"("\"")", R"("\\")", R"("\n")", R"("\u0001")"},
         {"\"a\"", "\"\"\"", "\"\n\"", R"("\u0062")"}},
        {R"({"type": "string", "pattern": "^[ab]*$", "minLength": 1, "maxLength": 2})",
         {"\"a\"", "\"bb\""},
         {"\"\"", "\"aaa\"", "\"c\""}},
        {R"({"pattern": "^x"})", {"\"xy\""}, {"\"y\""}},
    });
}

TEST(JsonSchema, Formats) {
    expect_schemas({
        {R"({"type": "string", "format": "date"})",
         {"\"2024-02-29\"", "\"1999-12-31\"", "\"2000-02-29\"", "\"0004-02-29\""},
         {"\"2023-02-29\"", "\"1900-02-29\"", "\"2024-13-01\"", "\"2024-04-31\"", "\"24-01-01\"",
          "\"0000-01-01\"", "\"2024-1-1\""}},
        {R"({"type": "string", "format": "time"})",
         {"\"23:59:59Z\"", "\"00:00:00.123+01:30\""},
         {"\"24:00:00Z\"", "\"12:00\"", "\"12:00:00\""}},
        {R"({"type": "string", "format": "date-time"})",
         {"\"2024-05-06T07:08:09Z\""},
         {"\"2024-05-06\"", "\"2024-05-06 07:08:09Z\""}},
        {R"({"type": "string", "format": "duration"})",
         {"\"P1Y2M3DT4H5M6S\"", "\"PT36H\"", "\"P2W\""},
         {"\"P\"", "\"PT\"", "\"P1S\"", "\"1Y\"", "\"P1Y2D\""}},
        {R"({"type": "string", "format": "uuid"})",
         {"\"123e4567-e89b-12d3-a456-426614174000\""},
         {"\"123e4567e89b12d3a456426614174000\"", "\"123e4567-e89b-12d3-a456-42661417400\""}},
        {R"({"type": "string", "format": "email"})",
         {"\"a.b+c@example.org\""},
         {"\"a@\"", "\"@b\"", "\"a b@c.d\"", "\".a@b.c\""}},
        {R"({"type": "string", "format": "hostname"})",
         {"\"a\"", "\"www.example-1.org\"", "\"a-b-c.d--e.a-b--c\"", "\"ab-cd-e\""},
         {"\"-a\"", "\"a-.b\"", "\"a..b\"", "\"\"", "\"xn--x\"", "\"a.XN--a\"", "\"ab--c.d\""}},
        {R"({"type": "string", "format": "ipv4"})",
         {"\"0.10.199.255\""},
         {"\"256.1.1.1\"", "\"1.1.1\"", "\"01.1.1.1\""}},
        {R"({"type": "string", "format": "ipv6"})",
         {"\"::\"", "\"::1\"", "\"1:2:3:4:5:6:7:8\"", "\"fe80::1\"", "\"1::\""},
         {"\"1:2\"", "\"12345::\"", "\"::1::\"", "\"1:2:3:4:5:6:7\"", "\":1\""}},
        {R"({"type": "string", "format": "uri"})",
         {"\"https://a.org/b?c=d#e\"", "\"http://a:80\""},
         {"\"a/b\"", "\"http://\"", "\"http://a b\"", "\"http://xn--x/\""}},
        {R"({"type": "string", "format": "uri-reference"})",
         {"\"/\"", "\"/a//b/?c=d#e\""},
         {"\"a b\"", "\"//a:b/c\"", "\"//a\""}},
        {R"({"type": "string", "format": "json-pointer"})",
         {"\"\"", "\"/a~0b/1\""},
         {"\"a\"", "\"/~\""}},
        {R"({"type": "integer", "format": "int32"})", {"5"}, {"5.5"}},
    });
}

TEST(JsonSchema, NumberKeywords) {
    expect_schemas({
        {R"({"type": "integer", "minimum": -2, "maximum": 3})",
         {"-2", "0", "3"},
         {"-3", "4", "1.5"}},
        {R"({"type": "integer", "exclusiveMinimum": -2, "exclusiveMaximum": 3})",
         {"-1", "2"},
         {"-2", "3"}},
        {R"({"type": "integer", "minimum": 1.5})", {"2", "17"}, {"1", "-3"}},
        {R"({"type": "number", "minimum": 0.5, "maximum": 1.5})",
         {"0.5", "1", "1.50", "0.75"},
         {"0.49", "1.51", "-0.7", "5e-1"}},
        {R"({"type": "number", "exclusiveMinimum": 0})", {"0.01", "7"}, {"0", "0.0", "-1"}},
        {R"({"type": "number", "exclusiveMaximum": 0})", {"-0.01"}, {"0", "1"}},
        {R"({"type": "integer", "multipleOf": 5, "minimum": 3})", {"5", "20"}, {"0", "3", "7"}},
        {R"({"type": "number", "multipleOf": 0.5})", {"1", "-2.5", "0.0"}, {"0.3", "1.25"}},
        {R"({"minimum": 5})", {"5", "6.5"}, {"4", "\"a\""}},
    });
}

TEST(JsonSchema, EnumAndConst) {
    expect_schemas({
        {R"({"enum": ["a", 1, 1.5, null, true, {"b": [1, "c"]}, "\n\""]})",
         {"\"a\"", "1", "1.5", "null", "true", R"({"b":[1,"c"]})", R"("\n\"")"},
         {"\"b\"", "2", "false", "{}", "a"}},
        {R"({"const": {"a": 1}})", {R"({"a":1})"}, {"{}", R"({"a":2})"}},
        {R"({"type": "string", "enum": ["a", 1, "bcd"], "maxLength": 2})",
         {"\"a\""},
         {"1", "\"bcd\""}},
        {R"({"enum": [1, 2, 3], "minimum": 2})", {"2", "3"}, {"1"}},
        {R"({"enum": [1, 2], "const": 2})", {"2"}, {"1"}},
        {R"({"enum": ["a", "ab", "abc"]})", {"\"a\"", "\"ab\"", "\"abc\""}, {"\"abcd\"", "\"\""}},
        {R"({"enum": [{"a": 1}, {"a": "x"}, 4], "properties": {"a": {"type": "string"}}})",
         {R"({"a":"x"})", "4"},
         {R"({"a":1})"}},
    });
}

TEST(JsonSchema, References) {
    expect_schemas({
        {R"({"$ref": "#/$defs/n", "$defs": {"n": {"type": "integer"}}})", {"1"}, {"\"a\""}},
        {R"({"$ref": "#/definitions/a~1b%20c~0", "definitions": {"a/b c~": {"type": "null"}}})",
         {"null"},
         {"1"}},
        {R"({"$ref": "#/$defs/n", "minimum": 3, "$defs": {"n": {"type": "integer"}}})",
         {"3"},
         {"2", "3.5"}},
        {R"({"properties": {"next": {"$ref": "#"}, "v": {"const": 1}}, "required": ["v"]})",
         {R"({"v":1})", R"({"next":{"v":1},"v":1})", R"({"next":{"next":{"v":1},"v":1},"v":1})"},
         {"{}", R"({"next":{},"v":1})"}},
        {R"({"anyOf": [{"type": "integer"}, {"type": "array", "items": {"$ref": "#"}}]})",
         {"1", "[]", "[1,[2,[]]]"},
         {"[\"a\"]"}},
        {R"({"$ref": "#/properties/a", "properties": {"a": {"type": "object"}}})", {"{}"}, {"1"}},
        {R"({"$ref": "#/prefixItems/1", "prefixItems": [true, {"type": "array", "maxItems": 1}]})",
         {"[]", "[1]"},
         {"[1,2]", "1"}},
    });
}

TEST(JsonSchema, RefusesByNameAndPlace) {
    for (const auto& [schema, why] : std::vector<std::pair<const char*, const char*>>{
             {R"({"not": {}})", "schema: #: the keyword not is not supported"},
             {R"({"properties": {"a/b": {"contains": {}}}})",
              "schema: #/properties/a~1b: the keyword contains is not supported"},
             {R"({"if": {}, "then": {}})", "the keyword if is not supported"},
             {R"({"items": {"uniqueItems": true}})",
              "schema: #/items: the keyword uniqueItems is not supported, except false"},
             {R"({"dependentRequired": {}})", "the keyword dependentRequired is not supported"},
             {R"({"propertyNames": {}})", "the keyword propertyNames is not supported"},
             {R"({"unevaluatedProperties": false})", "unevaluatedProperties is not supported"},
             {R"({"$dynamicRef": "#a"})", "the keyword $dynamicRef is not supported"},
             {R"({"items": {"$id": "a"}})", "schema: #/items: the keyword $id is not supported"},
             {R"({"tpye": "string"})", "schema: #: the keyword tpye is not supported"},
             {R"({"type": "strin"})", "schema: #/type: expected null, boolean"},
             {R"({"type": 3})", "schema: #/type: expected a type's name, found number"},
             {R"({"minLength": -1})", "schema: #/minLength: expected a whole number from 0"},
             {R"({"minLength": "1"})", "schema: #/minLength: expected a whole number from 0"},
             {R"({"pattern": "(?=a)b"})", "schema: #/pattern: regular expression: lookahead"},
             {R"({"patternProperties": {"(": {}}})",
              "schema: #/patternProperties: regular expression"},
             {R"({"type": "string", "format": "iri"})",
              "the format iri is not supported (expected one of date"},
             {R"({"minimum": "1"})", "schema: #/minimum: expected a number, found string"},
             {R"({"minimum": 1, "exclusiveMinimum": true})", "expected a number, found boolean"},
             {R"({"multipleOf": 0})", "expected a number above 0, found 0"},
             {R"({"type": "integer", "multipleOf": 99991})", "multipleOf: 99991 is not supported"},
             {R"({"enum": 1})", "schema: #/enum: expected a list, found number"},
             {R"({"required": "a"})", "schema: #/required: expected a list of texts"},
             {R"({"required": [1]})", "schema: #/required: expected a text, found number"},
             {R"({"properties": []})", "schema: #/properties: expected an object of schemas"},
             {R"({"properties": {"a": 1}})", "schema: #/properties/a: expected a schema"},
             {R"({"anyOf": []})", "schema: #/anyOf: expected a list of schemas"},
             {R"({"items": [{}]})",
              "schema: #/items: expected a schema, found a list; write prefixItems"},
             {R"({"$ref": "other.json"})", "schema: #/$ref: only places of the same schema"},
             {R"({"$ref": "#/$defs/a"})", "$ref #/$defs/a: there is no such place"},
             {R"({"$ref": "#"})", "schema: # refers to itself without a property or an item"},
             {R"({"anyOf": [{"$ref": "#"}, {"type": "null"}]})", "refers to itself without"},
             {R"({"oneOf": [{"anyOf": [{"$ref": "#"}]}, {"const": 1}]})", "itself"},
             {R"({"type": "object", "minProperties": 2})",
              "minProperties 2 is not supported with 0 declared properties"},
             {"[]", "schema: #: expected a schema (an object, true or false), found array"}})
        expect_contains(schema_error(schema), why);
}

TEST(JsonSchema, ASchemaWithoutValuesIsRefused) {
    for (const char* schema :
         {"false", R"({"type": "integer", "minimum": 5, "maximum": 4})", R"({"enum": []})",
          R"({"type": "string", "minLength": 3, "maxLength": 2})",
          R"({"const": 1, "type": "string"})",
          R"({"type": "object", "properties": {"a": false}, "required": ["a"]})",
          R"({"type": "object", "required": ["a"], "additionalProperties": false})",
          R"({"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]})",
          R"({"type": "array", "items": false, "minItems": 1})",
          R"({"type": "array", "minItems": 3, "maxItems": 2})",
          R"({"allOf": [{"type": "string"}, {"type": "integer"}]})"})
        EXPECT_EQ(schema_error(schema), "no text fits the constraint") << schema;
}

TEST(JsonSchema, LargeCountsAreCutWhereShorterValuesFitToo) {
    EXPECT_EQ(schema_error(R"({"type": "string", "maxLength": 1000000})"), "none");
    EXPECT_EQ(schema_error(R"({"type": "array", "maxItems": 1000000})"), "none");
    expect_contains(schema_error(R"({"type": "string", "minLength": 1000000})"), "too large");
}

TEST(JsonSchema, JsonIsAnObjectOrAList) {
    GrammarTexts any(json_grammar(true)), object(json_grammar(false));
    for (const char* text : {"{}", R"({"a": [1, "b", {"c": null}], "d": -1.5e3})"}) {
        EXPECT_TRUE(any.has(text)) << text;
        EXPECT_TRUE(object.has(text)) << text;
    }
    for (const char* text : {"[]", "[{}, [true]]"}) {
        EXPECT_TRUE(any.has(text)) << text;
        EXPECT_FALSE(object.has(text)) << text;
    }
    for (const char* text : {"", "1", "\"a\"", "{\"a\":}", "[1 2]", "{}{}", "{'a':1}"})
        EXPECT_FALSE(any.has(text)) << text;
    // As deep as calls may be open; then values without brackets are left.
    EXPECT_TRUE(any.begins(std::string(200, '[') + "1"));
}
