#include "gpt/engine/prompts.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "support/process.h"
#include "text/lines.h"

using namespace hark;
using gpt::PromptFormat;

namespace {

std::vector<gpt::Prompt> read_all(const std::string& input, PromptFormat format,
                                  const std::string& prompt_template = "") {
    std::FILE* file = std::tmpfile();
    std::fwrite(input.data(), 1, input.size(), file);
    std::fflush(file);
    std::rewind(file);
    ByteReader in(fileno(file), "input");
    gpt::PromptReader reader(in, format, prompt_template);
    std::vector<gpt::Prompt> prompts;
    while (auto prompt = reader.next()) prompts.push_back(*prompt);
    std::fclose(file);
    return prompts;
}

std::vector<std::string> texts(const std::string& input, PromptFormat format,
                               const std::string& prompt_template = "") {
    std::vector<std::string> result;
    for (const gpt::Prompt& prompt : read_all(input, format, prompt_template))
        result.push_back(prompt.text);
    return result;
}

using Texts = std::vector<std::string>;

}  // namespace

TEST(PromptReader, WholeStream) {
    EXPECT_EQ(texts("", PromptFormat::whole), Texts{});
    EXPECT_EQ(texts("one\ntwo\n", PromptFormat::whole), Texts{"one\ntwo"});
    EXPECT_EQ(texts("one \r\n\r\n\n", PromptFormat::whole), Texts{"one "});
    EXPECT_EQ(texts("\n", PromptFormat::whole), Texts{""});
    const std::string large(300'000, 'x');
    EXPECT_EQ(texts(large + "\n", PromptFormat::whole), Texts{large});
    EXPECT_EQ(texts("a\xFF"
                    "b",
                    PromptFormat::whole),
              Texts{"a\xEF\xBF\xBD"
                    "b"});
}

TEST(PromptReader, Lines) {
    EXPECT_EQ(texts("one\n\ntwo\r\nthree", PromptFormat::lines),
              (Texts{"one", "", "two", "three"}));
    EXPECT_EQ(texts("", PromptFormat::lines), Texts{});
    const std::string large(200'000, 'x');
    EXPECT_EQ(texts(large + "\n" + large, PromptFormat::lines), (Texts{large, large}));
}

TEST(PromptReader, LinesAcrossThePiecesTheyAreReadIn) {
    Texts lines;
    std::string input;
    for (size_t i = 0; input.size() < 1'000'000; ++i) {
        lines.push_back(std::string(i * i % 997, static_cast<char>('a' + i % 26)));
        input += lines.back() + "\n";
    }
    EXPECT_EQ(texts(input, PromptFormat::lines), lines);
    lines.push_back("no line end after it");
    EXPECT_EQ(texts(input + lines.back(), PromptFormat::lines), lines);
}

TEST(PromptReader, PromptsHaveABound) {
    const std::string most(kMaxLineBytes, 'x');
    EXPECT_EQ(texts("one\n" + most + "\ntwo", PromptFormat::lines), (Texts{"one", most, "two"}));
    const auto refusal = [&](const std::string& input, PromptFormat format) {
        try {
            read_all(input, format);
        } catch (const Error& wrong) {
            return std::string(wrong.what());
        }
        return std::string("accepted");
    };
    EXPECT_EQ(refusal("one\nx" + most + "\ntwo", PromptFormat::lines),
              "input: line 2: the line is longer than 64 MiB");
    EXPECT_EQ(refusal("\n\nx" + most, PromptFormat::jsonl),
              "input: line 3: the line is longer than 64 MiB");
    EXPECT_EQ(refusal("x" + most, PromptFormat::whole), "input: the prompt is longer than 64 MiB");
}

TEST(PromptReader, Templates) {
    EXPECT_EQ(texts("x\n\ny\n", PromptFormat::lines, "a {} b {}"),
              (Texts{"a x b x", "", "a y b y"}));
    EXPECT_EQ(texts("{}", PromptFormat::whole, "<{}>"), Texts{"<{}>"});
    EXPECT_EQ(texts("", PromptFormat::whole, "<{}>"), Texts{});
}

TEST(PromptReader, JsonLines) {
    const auto prompts = read_all(
        "{\"prompt\": \"one\", \"text\": \"no\"}\n\n"
        "{\"text\": \"two\", \"source\": \"a.wav\", \"start\": 1.5, "
        "\"tokens\": [1]}\n"
        "not json\n[1]\n{\"text\": 3}\n"
        "{\"source\": \"b.wav\", \"error\": \"broken\"}\n",
        PromptFormat::jsonl);
    ASSERT_EQ(prompts.size(), 6u);
    EXPECT_EQ(prompts[0].text, "one");
    EXPECT_EQ(prompts[1].text, "two");
    EXPECT_EQ(prompts[1].metadata, R"({"source":"a.wav","start":1.5})");
    EXPECT_EQ(prompts[2].error,
              "input: line 4: expected a JSON object, found text that is not JSON");
    EXPECT_EQ(prompts[3].error, "input: line 5: expected a JSON object, found array");
    EXPECT_EQ(prompts[4].error,
              "input: line 6: expected a string named prompt or text, found neither");
    EXPECT_EQ(prompts[5].error, "broken");
}

TEST(JsonLine, HoldsTheAnswer) {
    gpt::Completion answer;
    answer.text = "b\n\"c\"";
    answer.tokens = {1, 2};
    answer.logprobs = {-0.5, -1};
    answer.finish = gpt::Finish::context_full;
    const gpt::Prompt prompt{"a", "", R"({"source":"s"})"};
    EXPECT_EQ(gpt::json_line(prompt, answer, false),
              R"({"source":"s","prompt":"a","text":"b\n\"c\"","tokens":[1,2],)"
              R"("finish_reason":"length"})"
              "\n");
    EXPECT_NE(gpt::json_line(prompt, answer, true).find(R"("logprobs":[-0.5,-1.0])"),
              std::string::npos);
    EXPECT_EQ(gpt::json_line({"", "bad", "{}"}, {}, false), "{\"error\":\"bad\"}\n");
    EXPECT_NE(gpt::json_line({""}, {}, false).find("empty_prompt"), std::string::npos);
}
