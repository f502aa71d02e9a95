// Constrained answers of gpt-generate, on the real binary.
#include <gtest/gtest.h>

#include "support/scripted_model.h"
#include "tools/gpt_generate.h"

namespace hark::test {
namespace {

class GptConstrain : public testing::Test {
  protected:
    std::string file(const std::string& name, const std::string& text) {
        const std::string path = (folder_.path() / name).string();
        write_text(path, text);
        return path;
    }
    TemporaryDirectory folder_;
};

const std::string kPersonSchema = R"({"type": "object", "properties": {
    "name": {"type": "string", "minLength": 1, "maxLength": 12},
    "age": {"type": "integer", "minimum": 0, "maximum": 150},
    "mood": {"enum": ["happy", "sad"]}}, "required": ["name", "age"]})";

void expect_person(const std::string& text) {
    const json person = json::parse(text, nullptr, false);
    ASSERT_TRUE(person.is_object()) << text;
    EXPECT_TRUE(person["name"].is_string()) << text;
    EXPECT_TRUE(person["age"].is_number_integer() && person["age"] >= 0 && person["age"] <= 150)
        << text;
    const std::string mood = person.value("mood", "happy");
    EXPECT_TRUE(mood == "happy" || mood == "sad") << text;
}

TEST_F(GptConstrain, AJsonSchemaHolds) {
    const std::string schema = file("person.json", kPersonSchema);
    for (const char* seed : {"1", "2", "3"}) {
        const ProcessResult result = generate(
            {"--json-schema", schema, "--seed", seed, "--temperature", "1.5"}, "Once upon a time");
        EXPECT_EQ(result.exit_code, 0) << result.err;
        expect_person(result.out);
    }
    // The same seed gives the same text.
    const std::vector<std::string> flags = {"--json-schema", schema, "--n", "3", "-f", "jsonl"};
    const ProcessResult samples = generate(flags, "The king");
    ASSERT_EQ(lines_of(samples.out).size(), 3u) << samples.err;
    for (const std::string& line : lines_of(samples.out)) {
        expect_person(json::parse(line)["text"]);
        EXPECT_EQ(json::parse(line)["finish_reason"], "stop");
    }
    EXPECT_EQ(untimed(lines_of(generate(flags, "The king").out)[2]),
              untimed(lines_of(samples.out)[2]));
}

TEST_F(GptConstrain, RegexGrammarAndJsonHold) {
    const ProcessResult regex = generate({"--regex", "(yes|no), [a-z]{3,5}!"}, "Once upon a time");
    EXPECT_EQ(regex.exit_code, 0) << regex.err;
    EXPECT_TRUE(regex.out.starts_with("yes, ") || regex.out.starts_with("no, ")) << regex.out;
    EXPECT_TRUE(regex.out.ends_with("!\n")) << regex.out;
    const std::string gbnf =
        file("list.gbnf", "# a list\nroot ::= item{3}\nitem ::= \"- \" [a-z]{2} \"\\n\"\n");
    const ProcessResult grammar = generate({"--grammar", gbnf}, "Once upon a time");
    EXPECT_EQ(grammar.exit_code, 0) << grammar.err;
    ASSERT_EQ(lines_of(grammar.out).size(), 3u) << grammar.out;
    for (const std::string& line : lines_of(grammar.out))
        EXPECT_TRUE(line.starts_with("- ") && line.size() == 4) << line;
    const ProcessResult open = generate({"--constrain", "json", "--max-tokens", "1"}, "The king");
    EXPECT_TRUE(open.out.starts_with("{") || open.out.starts_with("[")) << open.out;
}

TEST_F(GptConstrain, AnAnswerThatIsCutIsWrittenAndTheRunFails) {
    const ProcessResult cut =
        generate({"--regex", "[a-z]{50}", "--max-tokens", "3", "-f", "jsonl"}, "The king");
    EXPECT_EQ(cut.exit_code, 1);
    EXPECT_EQ(json::parse(cut.out)["finish_reason"], "length");
    EXPECT_EQ(json::parse(cut.out)["completion_tokens"], 3);
    EXPECT_NE(json::parse(cut.out)["text"], "");
    expect_contains(cut.err, "the answer ends before its constraint does; give more --max-tokens");
    // A text that may end, or can only end, is whole.
    const ProcessResult whole =
        generate({"--regex", "[a-z]{1,50}", "--max-tokens", "1", "-f", "jsonl"}, "The king");
    EXPECT_EQ(whole.exit_code, 0) << whole.err;
    EXPECT_EQ(json::parse(whole.out)["finish_reason"], "length");
    const ProcessResult final_one =
        generate({"--regex", "\\n", "--max-tokens", "1", "-f", "jsonl"}, "The king");
    EXPECT_EQ(final_one.exit_code, 0) << final_one.err;
    EXPECT_EQ(json::parse(final_one.out)["finish_reason"], "stop");
    const ProcessResult stopped =
        generate({"--regex", "a+ b", "--stop", "a", "--max-tokens", "90"}, "The king");
    EXPECT_EQ(stopped.exit_code, 1);
    expect_contains(stopped.err, "the answer ends before its constraint does\n");
}

TEST_F(GptConstrain, ALineHasItsOwn) {
    const auto line = [](const json& fields) {
        json object = {{"prompt", "The king"}, {"max_tokens", 60}};
        object.update(fields);
        return object.dump() + "\n";
    };
    const json schema = {
        {"type", "json_schema"},
        {"json_schema", {{"name", "p"}, {"schema", json::parse(R"({"enum": [17]})")}}}};
    const ProcessResult result =
        generate({"--input-format", "jsonl", "--regex", "[xyz]{2}"},
                 line({{"response_format", schema}}) + line({{"regex", "a{3}"}}) +
                     line({{"grammar", "root ::= \"b\" \"c\""}}) + line(json::object()) +
                     line({{"response_format", {{"type", "text"}}}}) +
                     line({{"response_format", {{"type", "xml"}}}}) + line({{"regex", "("}}) +
                     line({{"response_format",
                            {{"type", "json_schema"},
                             {"json_schema", {{"schema", {{"not", json::object()}}}}}}}}));
    EXPECT_EQ(result.exit_code, 1);
    const std::vector<std::string> lines = lines_of(result.out);
    ASSERT_EQ(lines.size(), 8u) << result.out << result.err;
    EXPECT_EQ(json::parse(lines[0])["text"], "17");
    EXPECT_EQ(json::parse(lines[1])["text"], "aaa");
    EXPECT_EQ(json::parse(lines[2])["text"], "bc");
    EXPECT_EQ(json::parse(lines[3])["text"].get<std::string>().find_first_not_of("xyz"),
              std::string::npos);
    EXPECT_GT(json::parse(lines[4])["completion_tokens"], 2);
    for (const auto& [i, why] : std::vector<std::pair<size_t, const char*>>{
             {5, "response_format: expected an object with type text"},
             {6, "regular expression: '(' without ')'"},
             {7, "schema: #: the keyword not is not supported"}}) {
        EXPECT_EQ(json::parse(lines[i])["error"]["code"], "invalid_value") << lines[i];
        expect_contains(json::parse(lines[i])["error"]["message"], why);
        expect_contains(result.err, why);
    }
}

TEST_F(GptConstrain, WhatIsNotSupportedIsAnErrorBeforeTheFirstToken) {
    const std::string schema = file("s.json", R"({"properties": {"a": {"not": {}}}})");
    const std::string broken = file("b.json", "{");
    const std::string left = file("l.gbnf", "root ::= root \"a\" | \"b\"");
    const auto expect_refused = [&](std::vector<std::string> flags, int code,
                                    const std::string& why) {
        expect_fails_without_output(generate(std::move(flags), "The king"), code, why);
    };
    expect_refused({"--json-schema", schema}, 1,
                   "s.json: schema: #/properties/a: the keyword not is not supported");
    expect_refused({"--json-schema", broken}, 1, "b.json: schema: expected JSON");
    expect_refused({"--json-schema", "/nowhere.json"}, 1, "/nowhere.json");
    expect_refused({"--json-schema", R"({"type":"object"})"}, 2, "takes a file");
    expect_refused({"--grammar", left}, 1,
                   "l.gbnf: the rule root refers to itself before any text (left recursion)");
    expect_refused({"--regex", "(a"}, 2, "--regex: regular expression: '(' without ')'");
    expect_refused({"--regex", "(a)\\1"}, 2, "back references are not supported");
    expect_refused({"--constrain", "xml"}, 2, "--constrain");
    expect_refused({"--regex", "a", "--constrain", "json"}, 2, "exclude one another");
    expect_refused({"--json-schema", schema, "--grammar", left}, 2, "exclude one another");
    expect_refused({"--regex", "a", "--ignore-eos"}, 2, "--ignore-eos");
    const ProcessResult line = generate({"--input-format", "jsonl", "--ignore-eos"},
                                        "{\"prompt\": \"a\", \"regex\": \"b\"}\n");
    EXPECT_EQ(line.exit_code, 1);
    EXPECT_EQ(json::parse(line.out)["error"]["code"], "invalid_value");
}

// The model would say its script: reasoning and a text that does not fit.
TEST_F(GptConstrain, BeginsAfterAChatsReasoning) {
    const std::string path = (folder_.path() / "model").string();
    write_scripted_model(path, "\n", "<think> model is</think> text file");
    const ProcessResult result =
        run_tool("gpt-generate",
                 {"--model", path, "--threads", "1", "--chat", "--temperature", "0", "--regex",
                  "[0-9]{3}", "--format", "jsonl"},
                 "Why?");
    EXPECT_EQ(result.exit_code, 0) << result.err;
    const json answer = json::parse(result.out);
    EXPECT_EQ(answer["reasoning"], " model is");
    EXPECT_EQ(answer["text"].get<std::string>().size(), 3u) << result.out;
    EXPECT_EQ(answer["text"].get<std::string>().find_first_not_of("0123456789"), std::string::npos);
    EXPECT_EQ(answer["finish_reason"], "stop");
}

}  // namespace
}  // namespace hark::test
