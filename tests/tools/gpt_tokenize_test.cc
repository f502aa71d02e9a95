// gpt-tokenize's contract, on the real binary.
#include <gtest/gtest.h>

#include <cstring>
#include <sstream>

#include "support/expect.h"
#include "support/process.h"

using namespace hark::test;

namespace {

const std::string kDemo = source_dir() / "models/gpt-demo";
constexpr int kEot = 4095;  // of the demonstration model

ProcessResult tokenize(std::vector<std::string> arguments, const std::string& input = "") {
    arguments.insert(arguments.begin(), {"--model", kDemo + "/"});
    return run_tool("gpt-tokenize", arguments, input);
}

int32_t field(const std::string& file, size_t i) {
    int32_t value = -1;
    if (file.size() >= 4 * i + 4) std::memcpy(&value, file.data() + 4 * i, 4);
    return value;
}

// The ids of a token file of 16 bits, whose header is checked.
std::vector<int> ids_of(const std::string& file) {
    EXPECT_EQ(field(file, 0), 20240520);
    EXPECT_EQ(field(file, 1), 1);
    EXPECT_EQ(file.size(), 1024 + 2 * static_cast<size_t>(field(file, 2)));
    std::vector<int> ids;
    for (size_t at = 1024; at + 1 < file.size(); at += 2)
        ids.push_back(static_cast<unsigned char>(file[at]) |
                      static_cast<unsigned char>(file[at + 1]) << 8);
    return ids;
}

std::vector<int> numbers_of(const std::string& text) {
    std::istringstream in(text);
    std::vector<int> numbers;
    for (int number; in >> number;) numbers.push_back(number);
    return numbers;
}

std::vector<int> with_eot(std::vector<int> ids) {
    ids.insert(ids.begin(), kEot);
    return ids;
}

std::vector<int> joined(std::vector<int> a, const std::vector<int>& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
}

// 2.5 MB: several blocks.
std::string long_text() {
    std::string text;
    for (int i = 0; text.size() < 2'500'000; ++i)
        text += "Line " + std::to_string(i * i) +
                ": once upon a time,\n\n  it's been\tcaf\xC3\xA9 \xE4\xB8\x80 ";
    return text;
}

}  // namespace

TEST(GptTokenize, ATokenFileOnAPipeAndInAFile) {
    const std::string text = "Once upon a time <|endoftext|>\n";
    const ProcessResult ids = tokenize({"--format", "ids"}, text);
    EXPECT_EQ(ids.exit_code, 0) << ids.err;
    EXPECT_EQ(ids.err, "");
    EXPECT_GT(numbers_of(ids.out).size(), 5u);
    const ProcessResult piped = tokenize({}, text);
    EXPECT_EQ(piped.exit_code, 0) << piped.err;
    EXPECT_EQ(ids_of(piped.out), with_eot(numbers_of(ids.out)));
    const TemporaryDirectory directory;
    const std::string file = directory.path() / "t.bin";
    write_text(file, "before");
    EXPECT_EQ(run_shell("gpt-tokenize --model demo > " + file, text).exit_code, 0);
    EXPECT_EQ(read_text(file), piped.out);
    EXPECT_EQ(run_shell("gpt-tokenize --model demo >> " + file, text).exit_code, 0);
    EXPECT_EQ(read_text(file), piped.out + piped.out);
    EXPECT_EQ(ids_of(tokenize({"--no-eot"}, text).out), numbers_of(ids.out));
}

TEST(GptTokenize, DecodeGivesTheBytesBack) {
    const std::string text = long_text();
    const ProcessResult encoded = tokenize({}, text);
    EXPECT_EQ(tokenize({"--decode"}, encoded.out).out, text);
    const ProcessResult ids = tokenize({"--format", "ids"}, text);
    EXPECT_EQ(tokenize({"--decode", "--format", "ids"}, ids.out).out, text);
    const std::string books = "one\n<|endoftext|>\ntwo<|endoftext|>three";
    const ProcessResult split = tokenize({"--split-documents"}, books);
    const auto found = ids_of(split.out);
    EXPECT_EQ(std::count(found.begin(), found.end(), kEot), 3);
    EXPECT_EQ(tokenize({"--decode"}, split.out).out, books);
    const ProcessResult lines = tokenize({"--split-documents", "--format", "ids"}, books);
    EXPECT_EQ(std::count(lines.out.begin(), lines.out.end(), '\n'), 3);
    EXPECT_EQ(tokenize({"--decode", "--format", "ids"}, lines.out).out, books);
}

TEST(GptTokenize, FilesInOrderAndAnyNumberOfJobs) {
    const TemporaryDirectory directory;
    const std::string a = directory.path() / "a", b = directory.path() / "b";
    write_text(a, long_text());
    write_text(b, "short");
    const ProcessResult one = tokenize({a, b, "--threads", "1"});
    EXPECT_EQ(one.exit_code, 0) << one.err;
    EXPECT_EQ(tokenize({a, b, "--threads", "7"}).out, one.out);
    EXPECT_EQ(ids_of(one.out), joined(ids_of(tokenize({a}).out), ids_of(tokenize({b}).out)));
    const ProcessResult broken = tokenize({b, a + "-none", b});
    expect_fails(broken, 1, "a-none: cannot open");
    EXPECT_EQ(ids_of(broken.out), joined(ids_of(tokenize({b}).out), ids_of(tokenize({b}).out)));
}

TEST(GptTokenize, JsonLines) {
    const ProcessResult found = tokenize({"--input-format", "jsonl", "--format", "ids"},
                                         "{\"text\": \"one\"}\n{\"text\": \"two\"}\n");
    EXPECT_EQ(found.out,
              tokenize({"--format", "ids"}, "one").out + tokenize({"--format", "ids"}, "two").out);
    EXPECT_EQ(tokenize({"--input-format", "jsonl", "--key", "body", "--format", "ids"},
                       "{\"body\": \"one\"}")
                  .out,
              tokenize({"--format", "ids"}, "one").out);
    const ProcessResult broken = tokenize({"--input-format", "jsonl"}, "{\"text\": \"one\"}\n{}\n");
    expect_fails(broken, 1, "stdin: line 2: expected a string named text, found none");
    EXPECT_EQ(ids_of(broken.out), ids_of(tokenize({}, "one").out));
}

TEST(GptTokenize, ShardsAndWhatIsHeldOut) {
    const TemporaryDirectory directory;
    const std::string text = long_text(), out = directory.path() / "shards";
    const std::string val = directory.path() / "val.bin";
    const std::vector<int> all = ids_of(tokenize({}, text).out);
    ASSERT_GT(all.size(), 500'000u);
    const ProcessResult made = tokenize(
        {"--output-dir", out, "--shard-tokens", "300000", "--shard-name", "x", "--val-output", val},
        text);
    EXPECT_EQ(made.exit_code, 0) << made.err;
    EXPECT_EQ(made.out, "");
    std::vector<int> train, held_out, wanted_train, wanted_val;
    for (size_t i = 0; i < all.size(); ++i)
        (i / 2048 % 40 == 39 ? wanted_val : wanted_train).push_back(all[i]);
    size_t shards = 0;
    for (const auto& entry : std::filesystem::directory_iterator(out))
        shards += entry.is_regular_file();
    EXPECT_EQ(shards, (wanted_train.size() + 299'999) / 300'000);
    for (size_t i = 0; i < shards; ++i) {
        const auto part = ids_of(read_text(out + "/x_00000" + std::to_string(i) + ".bin"));
        EXPECT_EQ(part.size(), std::min<size_t>(300'000, wanted_train.size() - i * 300'000));
        train = joined(std::move(train), part);
    }
    EXPECT_EQ(train, wanted_train);
    EXPECT_EQ(ids_of(read_text(val)), wanted_val);
    expect_fails(tokenize({"--output-dir", out, "--shard-name", "x"}, "text"), 1,
                 "a shard of an earlier run");
    EXPECT_EQ(tokenize({"--output-dir", out}, "text").exit_code, 0);
    EXPECT_EQ(tokenize({"--decode", out + "/tokens_000000.bin"}).out, "text");
    const ProcessResult rows =
        tokenize({"--val-output", val, "--val-block", "1", "--hold-out-every", "2"}, "one two three");
    EXPECT_EQ(ids_of(rows.out).size() - ids_of(read_text(val)).size(), 0u);
}

TEST(GptTokenize, EmptyInputsAndEmptyDocuments) {
    for (const char* format : {"tokens", "ids"}) {
        const ProcessResult nothing = tokenize({"--format", format}, "");
        expect_fails(nothing, 1, "gpt-tokenize: no text on stdin");
        EXPECT_EQ(nothing.out, "");
        const ProcessResult decoded = tokenize({"--decode", "--format", format}, "");
        expect_fails(decoded, 1, "gpt-tokenize: no tokens on stdin");
        EXPECT_EQ(decoded.out, "");
    }
    const ProcessResult empty = tokenize({"--split-documents"}, "<|endoftext|>");
    EXPECT_EQ(empty.exit_code, 0) << empty.err;
    EXPECT_EQ(ids_of(empty.out).size(), 0u);
    EXPECT_EQ(tokenize({"--decode"}, empty.out).out, "");
}

TEST(GptTokenize, AnEmptyFileAmongOthersIsAWarning) {
    const TemporaryDirectory directory;
    const std::string empty = directory.path() / "empty", text = directory.path() / "text";
    write_text(empty, "");
    write_text(text, "some text");
    const ProcessResult both = tokenize({empty, text});
    EXPECT_EQ(both.exit_code, 0) << both.err;
    EXPECT_EQ(both.err, "gpt-tokenize: " + empty + ": the file is empty\n");
    EXPECT_EQ(both.out, tokenize({text}).out);
    const ProcessResult alone = tokenize({empty});
    expect_fails(alone, 1, "gpt-tokenize: no text in " + empty);
    EXPECT_EQ(alone.out, "");
    expect_fails(tokenize({"--decode", empty}), 1, empty + ": the file is empty");
}

TEST(GptTokenize, WhatIsNoTextIsRefused) {
    const TemporaryDirectory directory;
    const std::string sound = samples_dir() / "key.wav", text = directory.path() / "text";
    write_text(text, "some text");
    const std::string refused = "gpt-tokenize: " + sound +
                                ": this is no text (got a zero byte at offset 7, expected UTF-8); "
                                "hark transcribe makes text of a recording\n";
    for (const char* format : {"text", "jsonl"}) {
        const ProcessResult alone = tokenize({"--input-format", format, sound});
        EXPECT_EQ(alone.exit_code, 1) << format;
        EXPECT_EQ(alone.out, "") << format;
        EXPECT_EQ(alone.err, refused);
    }
    // The other files are read.
    const ProcessResult both = tokenize({text, sound, text});
    EXPECT_EQ(both.exit_code, 1);
    EXPECT_EQ(both.err, refused);
    EXPECT_EQ(both.out, tokenize({text, text}).out);
    // As a pipe brings it, byte by byte.
    expect_fails(run_shell("for x in $(seq 7); do printf a; sleep 0.02; done | cat - '" + sound +
                           "' | gpt-tokenize --model '" + kDemo + "/'"),
                 1, "stdin: this is no text (got a zero byte at offset 14");
}

TEST(GptTokenize, InputsThatCannotBeReadLeaveNoEmptyFile) {
    for (const char* format : {"tokens", "ids"}) {
        const ProcessResult result = tokenize({"--format", format, "/nowhere/a", "/nowhere/b"});
        EXPECT_EQ(result.exit_code, 1);
        EXPECT_EQ(result.out, "");
        EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 2) << result.err;
    }
}

TEST(GptTokenize, TooLittleTextToHoldOutIsSaid) {
    const TemporaryDirectory directory;
    const std::string val = directory.path() / "val.bin";
    const ProcessResult none = tokenize({"--val-output", val}, "Once upon a time");
    EXPECT_EQ(none.exit_code, 0) << none.err;
    EXPECT_EQ(ids_of(read_text(val)).size(), 0u);
    const size_t tokens = ids_of(none.out).size();
    EXPECT_NE(none.err.find("--val-output: nothing is held out (got " + std::to_string(tokens) +
                            " tokens, the first held-out block begins after 79872)"),
              std::string::npos)
        << none.err;
    EXPECT_NE(none.err.find("--val-block"), std::string::npos) << none.err;
    EXPECT_NE(none.err.find("--hold-out-every"), std::string::npos) << none.err;
    EXPECT_EQ(
        tokenize({"--val-output", val, "--val-block", "2", "--hold-out-every", "2"}, "Once upon a time")
            .err,
        "");
}

TEST(GptTokenize, BrokenTokenFilesAreRefused) {
    const TemporaryDirectory directory;
    const std::string path = directory.path() / "t.bin";
    const std::string good = tokenize({}, "Once upon a time").out;
    const auto decode = [&](const std::string& bytes) {
        write_text(path, bytes);
        const ProcessResult file = tokenize({"--decode", path}),
                            stream = tokenize({"--decode"}, bytes);
        EXPECT_EQ(stream.exit_code, file.exit_code) << stream.err;
        EXPECT_NE(stream.err.find("stdin: "), std::string::npos) << stream.err;
        return file;
    };
    expect_fails(decode(good.substr(0, good.size() - 1)), 1, "t.bin: its header counts");
    expect_fails(decode(good + "x"), 1, "t.bin: its header counts");
    expect_fails(decode("x" + good), 1,
                 "t.bin: not a token file; gpt-tokenize makes one from text");
    expect_fails(decode("short"), 1, "t.bin: not a token file");
    expect_fails(decode(good.substr(0, 100)), 1, "its header is cut off (got 100 bytes");
    std::string over = good;
    over[1024] = '\x00';
    over[1025] = '\x10';  // 4096
    expect_fails(decode(over), 1, "t.bin: token id 4096 is not in the vocabulary of 4096");
    expect_fails(tokenize({"--decode", "--format", "ids"}, "1 2\n3 4096\n"), 1,
                 "stdin: line 2: token");
}

TEST(GptTokenize, LargeVocabulariesTakeThirtyTwoBits) {
    const char* digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string ranks;
    for (int i = 0; i < 256; ++i)
        ranks += std::string{digits[i >> 2], digits[(i & 3) << 4], '=', '='} + " " +
                 std::to_string(i) + "\n";
    for (int i = 0; i < 65'536; ++i)
        ranks += std::string{digits[i >> 10], digits[i >> 4 & 63], digits[(i & 15) << 2], '='} +
                 " " + std::to_string(256 + i) + "\n";
    const TemporaryDirectory directory;
    const std::string path = directory.path() / "ranks";
    write_text(path, ranks);
    const ProcessResult made = run_tool("gpt-tokenize", {"--tokenizer", path}, "hi");
    EXPECT_EQ(made.exit_code, 0) << made.err;
    EXPECT_EQ(field(made.out, 0), 20240801);
    EXPECT_EQ(field(made.out, 1), 7);
    EXPECT_EQ(field(made.out, 2), 2);
    EXPECT_EQ(field(made.out, 256), 65'792);  // <|endoftext|>, after the ranks
    EXPECT_EQ(field(made.out, 257), 256 + ('h' << 8 | 'i'));
    EXPECT_EQ(run_tool("gpt-tokenize", {"--tokenizer", path, "--decode"}, made.out).out, "hi");
}

TEST(GptTokenize, TrainedTokenizersOfEveryKind) {
    const TemporaryDirectory directory;
    const std::string text =
        read_text(source_dir() / "docs/formats.md") + read_text(source_dir() / "README.md");
    for (const std::string kind : {"bytes", "unigram", "bpe"}) {
        const std::string out = directory.path() / kind;
        const ProcessResult trained = run_tool(
            "gpt-tokenize",
            {"--train-tokenizer", "--vocab-size", "800", "--train-kind", kind, "--output-dir", out},
            text);
        ASSERT_EQ(trained.exit_code, 0) << trained.err;
        EXPECT_EQ(trained.out, "");
        const ProcessResult encoded = run_tool("gpt-tokenize", {"--tokenizer", out}, text);
        ASSERT_EQ(encoded.exit_code, 0) << encoded.err;
        EXPECT_LT(ids_of(encoded.out).size(), text.size() / 2);
        EXPECT_EQ(run_tool("gpt-tokenize", {"--tokenizer", out, "--decode"}, encoded.out).out,
                  text);
    }
    const std::string bytes = directory.path() / "256";
    ASSERT_EQ(run_tool("gpt-tokenize",
                       {"--train-tokenizer", "--vocab-size", "256", "--output-dir", bytes}, text)
                  .exit_code,
              0);
    EXPECT_EQ(ids_of(run_tool("gpt-tokenize", {"--tokenizer", bytes}, text).out).size(),
              text.size() + 1);
    const ProcessResult few =
        run_tool("gpt-tokenize",
                 {"--train-tokenizer", "--vocab-size", "900", "--output-dir", bytes}, "only this");
    EXPECT_EQ(few.exit_code, 0);
    EXPECT_NE(few.err.find("tokens only (expected 900)"), std::string::npos) << few.err;
    expect_fails(run_tool("gpt-tokenize",
                          {"--train-tokenizer", "--vocab-size", "900", "--output-dir", bytes}, ""),
                 1, "no text on stdin");
}

TEST(GptTokenize, WithoutAnEndOfTextToken) {
    const TemporaryDirectory directory;
    std::string file = read_text(source_dir() / "models/gpt-demo/tokenizer.json");
    for (size_t at; (at = file.find("<|endoftext|>")) != file.npos;)
        file.replace(at, 13, "<|other|>");
    const std::string path = directory.path() / "tokenizer.json";
    write_text(path, file);
    expect_fails(run_tool("gpt-tokenize", {"--tokenizer", path}, "text"), 1,
                 "expected <|endoftext|> or </s>); --no-eot");
    EXPECT_EQ(run_tool("gpt-tokenize", {"--tokenizer", path, "--no-eot"}, "text").out,
              tokenize({"--no-eot"}, "text").out);
}

TEST(GptTokenize, WrongCommandLines) {
    using Words = std::vector<std::string>;
    for (const Words& words :
         {Words{"--vocab-size", "300"},
          {"--format", "ids", "--no-eot"},
          {"--format", "ids", "--val-output", "v"},
          {"--format", "ids", "--output-dir", "d"},
          {"--decode", "--no-eot"},
          {"--decode", "--input-format", "jsonl"},
          {"--decode", "--output-dir", "d"},
          {"--input-format", "jsonl", "--split-documents"},
          {"-", "-"},
          {"--shard-name", "a/b"},
          {"--train-tokenizer", "--output-dir", "d"},
          {"--train-tokenizer", "--vocab-size", "300", "--output-dir", "d", "--format", "ids"}})
        expect_fails(tokenize(words, "text"), 2, "try gpt-tokenize --help");
    expect_fails(run_tool("gpt-tokenize", {"--train-tokenizer", "--vocab-size", "300"}, "x"), 2,
                 "--output-dir");
    expect_fails(run_tool("gpt-tokenize",
                          {"--train-tokenizer", "--vocab-size", "255", "--output-dir", "d"}, "x"),
                 2, "256");
    expect_fails(run_shell("HOME=/none gpt-tokenize", "x"), 1,
                 "no model is set; run: hark model get gpt2");
    expect_fails(run_tool("gpt-tokenize", {"--model", "none-such"}, "x"), 1,
                 "no model 'none-such'");
    const ProcessResult terminal =
        run_shell("script -qec 'gpt-tokenize --model demo < /dev/null' /dev/null");
    EXPECT_EQ(terminal.exit_code, 2);
    EXPECT_NE(terminal.out.find("stdout is a terminal, and a token file is binary"),
              std::string::npos)
        << terminal.out;
}
