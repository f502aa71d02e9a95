#include "gpt/chat/reasoning.h"

#include <gtest/gtest.h>

#include "core/json/json.h"
#include "support/model_tokenizer.h"

namespace hark::test {
namespace {

using gpt::ReasoningSplitter;

const gpt::ReasoningMarkers* markers_of(const std::string& source,
                                        const std::string& tokenizer = "llama3") {
    return gpt::reasoning_markers(ChatTemplate::parse(source, "test"), model_tokenizer(tokenizer));
}

const gpt::ReasoningMarkers* think() { return markers_of("{{ '</think>' }}"); }
const gpt::ReasoningMarkers* channels() { return markers_of("<|channel|>"); }

using Parts = std::pair<std::string, std::string>;  // reasoning, answer

std::string texts_of(const std::vector<gpt::ToolText>& texts) {
    std::string all;
    for (const gpt::ToolText& one : texts) all += one.name + ":" + one.arguments + ";";
    return all;
}

// The same whether the text comes at once or byte for byte.
Parts split(const gpt::ReasoningMarkers* markers, const std::string& text, bool opened = false) {
    const auto whole = gpt::split_reasoning(markers, opened, text);
    ReasoningSplitter splitter(markers, opened);
    Parts pieces;
    const auto add = [&](const ReasoningSplitter::Parts& parts) {
        pieces.first += parts.reasoning;
        pieces.second += parts.answer;
    };
    for (const char byte : text) add(splitter.push(std::string(1, byte)));
    add(splitter.finish());
    EXPECT_EQ(pieces, Parts(whole.reasoning, whole.answer)) << text;
    EXPECT_EQ(texts_of(splitter.tool_texts()), texts_of(whole.tool_texts)) << text;
    return pieces;
}

TEST(Reasoning, MarkersAreThoseOfTheTemplateOrTheTokenizer) {
    EXPECT_EQ(markers_of("{{ messages }}"), nullptr);
    ASSERT_NE(think(), nullptr);
    EXPECT_EQ(think()->begin, "<think>");
    EXPECT_EQ(markers_of("{{ messages }}", "smollm3"), think());
    EXPECT_EQ(markers_of("{{ '[/THINK]' }}")->begin, "[THINK]");
    EXPECT_EQ(markers_of("{{ messages }}", "gpt_oss"), channels());
    EXPECT_EQ(channels()->form, gpt::ReasoningMarkers::Form::channels);
}

TEST(Reasoning, TextsForToolsAreApart) {
    const std::string text =
        "<|channel|>analysis<|message|>Look.<|end|><|start|>assistant<|channel|>commentary "
        "to=functions.f <|constrain|>json<|message|>{\"a\":\n 1}<|call|><|start|>assistant "
        "to=browser.open<|channel|>commentary<|message|>{}<|call|>";
    EXPECT_EQ(split(channels(), text), Parts("Look.", ""));
    EXPECT_EQ(texts_of(gpt::split_reasoning(channels(), false, text).tool_texts),
              "f:{\"a\":\n 1};browser.open:{};");
}

TEST(Reasoning, SpecialTokensOfTheMarkersAreShown) {
    const Tokenizer smollm = model_tokenizer("smollm3"), gpt_oss = model_tokenizer("gpt_oss");
    EXPECT_TRUE(gpt::marker_tokens(*think(), smollm).empty());  // they are not special
    const auto ids = gpt::marker_tokens(*channels(), gpt_oss);
    for (const char* token : {"<|channel|>", "<|message|>", "<|start|>", "<|end|>"})
        EXPECT_EQ(std::count(ids.begin(), ids.end(), gpt_oss.id_of(token).value()), 1) << token;
}

TEST(Reasoning, TagsAreCutOff) {
    EXPECT_EQ(split(think(), "<think>\na\n\nb\n</think>\n\nc\n"), Parts("a\n\nb", "c\n"));
    EXPECT_EQ(split(think(), "\n<think>a</think>b"), Parts("a", "b"));
    EXPECT_EQ(split(think(), "<think>\n\n</think>\n\nb"), Parts("", "b"));
    EXPECT_EQ(split(think(), "a\n</think>\nb", true), Parts("a", "b"));
    EXPECT_EQ(split(think(), "<think>a < b </thin"), Parts("a < b </thin", ""));
    EXPECT_EQ(split(think(), "<think>a\n", false), Parts("a", ""));
    EXPECT_EQ(split(nullptr, "\n<think>a</think>"), Parts("", "\n<think>a</think>"));
    EXPECT_EQ(split(think(), ""), Parts("", ""));
}

// A marker within an answer is text.
TEST(Reasoning, OnlyTheBeginningOpensIt) {
    EXPECT_EQ(split(think(), " <thinking>"), Parts("", " <thinking>"));
    EXPECT_EQ(split(think(), "The tag <think>a</think>."), Parts("", "The tag <think>a</think>."));
    EXPECT_EQ(split(think(), "<think>a</think>b<think>c</think>"), Parts("a", "b<think>c</think>"));
    EXPECT_EQ(split(think(), "<thi"), Parts("", "<thi"));
}

TEST(Reasoning, TextIsWrittenAsSoonAsItIsCertain) {
    ReasoningSplitter splitter(think(), false);
    EXPECT_EQ(splitter.push("<think>\nso").reasoning, "so");
    EXPECT_EQ(splitter.push(" it\n\n</").reasoning, " it");
    EXPECT_EQ(splitter.push("b>").reasoning, "\n\n</b>");
    EXPECT_EQ(splitter.push("</think>").reasoning, "");
    EXPECT_EQ(splitter.push("\n\nYes").answer, "Yes");
}

TEST(Reasoning, ChannelsAreTakenApart) {
    EXPECT_EQ(split(channels(),
                    "<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>final"
                    "<|message|>b\nc"),
              Parts("a", "b\nc"));
    EXPECT_EQ(split(channels(),
                    "<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>commentary"
                    "<|message|>First.<|end|><|start|>assistant<|channel|>analysis<|message|>b"
                    "<|end|><|start|>assistant<|channel|>final<|message|>c<|return|>"),
              Parts("a\n\nb", "First.\n\nc"));
    EXPECT_EQ(split(channels(),
                    "<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>commentary"
                    " to=functions.f <|constrain|>json<|message|>{\"x\":1}<|call|>"),
              Parts("a", ""));
    EXPECT_EQ(split(channels(), "a", true), Parts("a", ""));
    EXPECT_EQ(split(channels(), "Just text"), Parts("", "Just text"));
    EXPECT_EQ(split(channels(), "<|channel|>fin"), Parts("", ""));
}

}  // namespace
}  // namespace hark::test
