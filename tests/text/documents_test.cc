// Where documents begin and end, however the text comes; and ids back to text.
#include "text/tokens/documents.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "core/error.h"
#include "support/byte_vocabulary.h"
#include "support/process.h"
#include "text/lines.h"
#include "text/split.h"
#include "text/tokens/decode_tokens.h"

using namespace hark;

namespace {

struct Read {
    std::vector<std::string> documents, problems;
};

// All documents of a text that is read in blocks.
Read read_documents(const std::string& text, const DocumentOptions& options, size_t block_bytes) {
    const test::TemporaryDirectory directory;
    test::write_text(directory.path() / "x", text);
    InputFile file(directory.path() / "x");
    DocumentReader reader(file.bytes(), options, last_word_cut, block_bytes);
    Read read;
    bool open = false;
    while (auto block = reader.next()) {
        read_json_lines(*block, options.key, read.problems);
        for (const auto& part : block->parts) {
            EXPECT_EQ(part.begins, !open);
            if (part.begins) read.documents.emplace_back();
            read.documents.back() += block->text_of(part);
            open = !part.ends;
        }
    }
    EXPECT_FALSE(open);
    return read;
}

using Documents = std::vector<std::string>;
const size_t kSizes[] = {1, 2, 7, 13, 100};

Tokenizer& byte_tokenizer() {
    static const auto kTokenizer = [] {
        const test::TemporaryDirectory directory;
        test::write_text(directory.path() / "ranks", test::byte_vocabulary());
        return Tokenizer::load(directory.path() / "ranks");
    }();
    return *kTokenizer;
}

std::string decoded_ids(const std::string& text) {
    const test::TemporaryDirectory directory;
    test::write_text(directory.path() / "ids", text);
    std::string out;
    TokenDecoder decoder(byte_tokenizer(), [&](std::string_view part) { out += part; });
    decode_ids_text(directory.path() / "ids", decoder);
    decoder.finish();
    return out;
}

}  // namespace

TEST(Documents, AFileIsOneWhateverStandsInIt) {
    for (size_t size : kSizes) {
        EXPECT_EQ(read_documents("one two<|endoftext|>three\n", {}, size).documents,
                  Documents{"one two<|endoftext|>three\n"});
        EXPECT_EQ(read_documents("", {}, size).documents, Documents{});
        EXPECT_EQ(read_documents(" ", {}, size).documents, Documents{" "});
    }
}

TEST(Documents, SeparatorsSplitAndEmptyOnesAreLeftOut) {
    const DocumentOptions split{.split = true};
    const std::string eot(kEndOfText);
    for (size_t size : kSizes) {
        EXPECT_EQ(read_documents("one two" + eot + "three\n" + eot + "x", split, size).documents,
                  (Documents{"one two", "three\n", "x"}));
        EXPECT_EQ(read_documents(eot + eot + "a b c d" + eot, split, size).documents,
                  Documents{"a b c d"});
        EXPECT_EQ(read_documents(eot, split, size).documents, Documents{});
        EXPECT_EQ(read_documents("a <|endoftext| >< |endoftext|>", split, size).documents,
                  Documents{"a <|endoftext| >< |endoftext|>"});
        EXPECT_EQ(read_documents("a<|endof<|endoftext|>b<|endoftext", split, size).documents,
                  (Documents{"a<|endof", "b<|endoftext"}));
    }
}

TEST(Documents, JsonLinesAndWhatIsWrongWithThem) {
    const DocumentOptions jsonl{.format = "jsonl"};
    const std::string lines =
        "{\"text\": \"a\\nb <|endoftext|>\"}\n\n{\"text\": 3}\nnot\r\n"
        "{\"text\": \"\"}\n{\"id\": 1}\n{\"text\": \"caf\\u00e9\"}";
    for (size_t size : kSizes) {
        const Read read = read_documents(lines, jsonl, size);
        EXPECT_EQ(read.documents, (Documents{"a\nb <|endoftext|>", "caf\xC3\xA9"}));
        ASSERT_EQ(read.problems.size(), 3u);
        EXPECT_NE(read.problems[0].find("/x: line 3: expected a string named text, found number"),
                  std::string::npos);
        EXPECT_NE(read.problems[1].find("line 4: expected a JSON object, found text that is not"),
                  std::string::npos);
        EXPECT_NE(read.problems[2].find("line 6: expected a string named text, found none"),
                  std::string::npos);
    }
}

TEST(Documents, ALineOfJsonHasABound) {
    const DocumentOptions jsonl{.format = "jsonl"};
    const std::string line = "{\"text\": \"a\"}";
    std::string most = line + "\n" + line + std::string(kMaxLineBytes - line.size(), ' ');
    EXPECT_EQ(read_documents(most, jsonl, 100).documents, (Documents{"a", "a"}));
    most += " \n";
    try {
        read_documents(most, jsonl, 100);
        FAIL() << "a line over the bound is read";
    } catch (const Error& wrong) {
        EXPECT_TRUE(
            std::string(wrong.what()).ends_with("/x: line 2: the line is longer than 64 MiB"))
            << wrong.what();
    }
}

TEST(Documents, AnInputThatBreaksDoesNotStopTheNext) {
    const test::TemporaryDirectory directory;
    const std::string file = directory.path() / "a";
    test::write_text(file, "text");
    const DocumentOptions options;
    Documents problems, texts;
    DocumentReaders readers(
        {file + "-none", directory.path(), file}, options, last_word_cut,
        [&](const std::string& problem) { problems.push_back(problem); },
        [](const std::string&) {});
    while (const auto block = readers.next())
        for (const auto& part : block->parts) texts.emplace_back(block->text_of(part));
    EXPECT_EQ(texts, Documents{"text"});
    ASSERT_EQ(problems.size(), 2u);
    EXPECT_NE(problems[0].find("a-none: cannot open"), std::string::npos);
    EXPECT_NE(problems[1].find("cannot read"), std::string::npos);
}

TEST(Documents, IdsAsTextAreLinesOfDocuments) {
    EXPECT_EQ(decoded_ids("104 105\n"), "hi");
    EXPECT_EQ(decoded_ids("104 105\n\n 33\t33 \r\n120"), "hi<|endoftext|>!!<|endoftext|>x");
    EXPECT_EQ(decoded_ids("256 104 256 105\n"), "h<|endoftext|>i");  // 256 is <|endoftext|>
    EXPECT_EQ(decoded_ids(""), "");
    EXPECT_THROW(decoded_ids("1 257\n"), Error);
    EXPECT_THROW(decoded_ids("1 -2\n"), Error);
    EXPECT_THROW(decoded_ids("99999999999\n"), Error);
    EXPECT_THROW(decoded_ids("1 x\n"), Error);
}
