// GGUF files of the test's own writer: what they hold, and what is said of broken ones.
#include "formats/gguf.h"

#include <gtest/gtest.h>

#include <functional>

#include "core/error.h"
#include "support/gguf_writer.h"
#include "support/process.h"

namespace hark {
namespace {

using test::GgufWriter;

std::string floats(const std::vector<float>& values) {
    return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

// A key of every kind, two tensors.
GgufWriter small_file() {
    GgufWriter file;
    file.key("u8", 0, "\xff");
    file.key("i8", 1, "\xff");
    file.key("u16", 2, GgufWriter::number<uint16_t>(65535));
    file.key("i16", 3, GgufWriter::number<int16_t>(-2));
    file.u32("u32", 4'000'000'000);
    file.key("i32", 5, GgufWriter::number<int32_t>(-3));
    file.f32("f32", 0.5f);
    file.key("yes", 7, "\x01");
    file.text("text", "Ġthe");
    file.texts("texts", {"a", "", "bc"});
    file.i32s("i32s", {7, -1});
    file.booleans("booleans", {true, false, true});
    file.key("u64", 10, GgufWriter::number<uint64_t>(1ull << 40));
    file.key("i64", 11, GgufWriter::number<int64_t>(-(1ll << 40)));
    file.key("f64", 12, GgufWriter::number<double>(0.25));
    file.tensor("a.weight", {3, 2}, 0, floats({1, 2, 3, 4, 5, 6}));
    file.tensor("b.weight", {32, 2}, 8, std::string(68, '\x01'));
    return file;
}

class Gguf : public testing::Test {
  protected:
    GgufFile read(const std::string& bytes) {
        test::write_text(path(), bytes);
        return GgufFile(path());
    }
    void expect_error(const std::function<void()>& action, const std::string& part) {
        try {
            action();
            ADD_FAILURE() << "accepted; expected: " << part;
        } catch (const Error& error) {
            const std::string message = error.what();
            EXPECT_EQ(message.rfind(path().string() + ": ", 0), 0u) << message;
            EXPECT_NE(message.find(part), std::string::npos) << message;
        }
    }
    void expect_refused(const std::string& bytes, const std::string& part) {
        expect_error([&] { read(bytes); }, part);
    }
    std::filesystem::path path() const { return directory_.path() / "x.gguf"; }

  private:
    test::TemporaryDirectory directory_;
};

TEST_F(Gguf, KeysHaveTheirValues) {
    const auto any = std::pair(INT64_MIN, INT64_MAX);
    for (const uint32_t version : {2, 3}) {
        GgufWriter writer = small_file();
        writer.version = version;
        const GgufFile file = read(writer.bytes());
        for (const auto& [key, value] :
             std::vector<std::pair<std::string, int64_t>>{{"u8", 255},
                                                          {"i8", -1},
                                                          {"u16", 65535},
                                                          {"i16", -2},
                                                          {"u32", 4'000'000'000},
                                                          {"i32", -3},
                                                          {"u64", 1ll << 40},
                                                          {"i64", -(1ll << 40)}})
            EXPECT_EQ(file.integer(key, any.first, any.second), value) << key;
        EXPECT_EQ(file.number("f32"), 0.5);
        EXPECT_EQ(file.number("f64"), 0.25);
        EXPECT_TRUE(file.boolean("yes"));
        EXPECT_EQ(file.text("text"), "Ġthe");
        EXPECT_EQ(file.texts("texts"), (std::vector<std::string_view>{"a", "", "bc"}));
        EXPECT_EQ(file.integers("i32s"), (std::vector<int64_t>{7, -1}));
        EXPECT_EQ(file.booleans("booleans"), (std::vector<bool>{true, false, true}));
        EXPECT_TRUE(file.has_array("booleans"));
        EXPECT_FALSE(file.has_array("yes"));
        EXPECT_FALSE(file.has_array("none"));
        EXPECT_FALSE(file.has("none"));
    }
}

TEST_F(Gguf, KeysOfAnotherKindAreNamed) {
    const GgufFile file = read(small_file().bytes());
    expect_error([&] { file.text("none"); }, "expected the key 'none', found none");
    expect_error([&] { file.text("u32"); }, "key 'u32': expected a string, found u32");
    expect_error([&] { file.text("texts"); }, "found an array of string");
    expect_error([&] { file.texts("i32s"); },
                 "expected an array of strings, found an array of i32");
    expect_error([&] { file.integer("f32", 0, 1); }, "expected a whole number, found f32");
    expect_error([&] { file.integer("u8", 0, 254); }, "from 0 to 254, found 255");
    expect_error([&] { file.number("u8"); }, "expected a number, found u8");
    expect_error([&] { file.boolean("u8"); }, "expected true or false, found u8");
    expect_error([&] { file.booleans("i32s"); },
                 "expected an array of true and false, found an array of i32");
}

TEST_F(Gguf, TensorsAreRowMajorViews) {
    const GgufFile file = read(small_file().bytes());
    ASSERT_EQ(file.tensors().size(), 2u);
    const Tensor& a = file.tensors().at("a.weight");
    EXPECT_EQ(describe(a), "f32 (2, 3)");
    EXPECT_EQ(a.as<float>()[5], 6);
    EXPECT_EQ(describe(file.tensors().at("b.weight")), "q8_0 (2, 32)");
    EXPECT_EQ(static_cast<const char*>(file.tensors().at("b.weight").data)[67], 1);
    file.forget(a);
    EXPECT_EQ(a.as<float>()[0], 1);
}

TEST_F(Gguf, AnotherAlignment) {
    GgufWriter writer;
    writer.alignment = 64;
    writer.u32("general.alignment", 64);
    writer.tensor("a", {1}, 0, floats({1}));
    writer.tensor("b", {1}, 0, floats({2}));
    EXPECT_EQ(read(writer.bytes()).tensors().at("b").as<float>()[0], 2);
    for (const uint32_t wrong : {0, 4, 48, 1 << 20}) {
        GgufWriter bad;
        bad.u32("general.alignment", wrong);
        expect_refused(bad.bytes(), "key 'general.alignment': expected a ");
    }
}

TEST_F(Gguf, NoPartOfAFileIsAFile) {
    GgufWriter writer;
    writer.text("k", "value");
    writer.tensor("a", {8}, 0, floats({1, 2, 3, 4, 5, 6, 7, 8}));
    const std::string whole = writer.bytes();
    read(whole);
    for (size_t size = 0; size < whole.size(); ++size) expect_refused(whole.substr(0, size), "");
}

TEST_F(Gguf, BrokenFilesAreNamed) {
    struct Case {
        const char* expected;
        std::function<void(GgufWriter&)> change;
    };
    constexpr uint64_t kHuge = 1ull << 31;
    const auto huge_string = GgufWriter::number(kHuge);
    const std::vector<Case> cases = {
        {"expected version 2 or 3 of GGUF, little-endian, found 1",
         [](GgufWriter& f) { f.version = 1; }},
        {"found 50331648", [](GgufWriter& f) { f.version = 3 << 24; }},
        {"the keys: expected at most ", [](GgufWriter& f) { f.more_keys = kHuge; }},
        {"the tensors: expected at most ", [](GgufWriter& f) { f.more_tensors = kHuge; }},
        {"bytes, which is what is left of the file, found 2147483648",
         [&](GgufWriter& f) { f.key("long", 8, huge_string); }},
        {"file, found 2147483648 values of 8",
         [&](GgufWriter& f) { f.key("many", 9, GgufWriter::number(8u) + huge_string); }},
        {"found 18446744073709551615 values of 8",
         [](GgufWriter& f) {
             f.key("many", 9, GgufWriter::number(10u) + GgufWriter::number(UINT64_MAX));
         }},
        {"key 'x': expected a type of value from 0 to 12, not an array of arrays, found 13",
         [](GgufWriter& f) { f.key("x", 13, "    "); }},
        {"not an array of arrays, found 9",
         [](GgufWriter& f) {
             f.key("x", 9, GgufWriter::number(9u) + GgufWriter::number<uint64_t>(0));
         }},
        {"the key 'u8' is there twice", [](GgufWriter& f) { f.key("u8", 0, "1"); }},
        {"expected at most 65535 bytes, found 70000",
         [](GgufWriter& f) { f.key(std::string(70000, 'k'), 0, "1"); }},
        {"tensor 'a.weight': is there twice",
         [](GgufWriter& f) { f.tensor("a.weight", {1}, 0, floats({1})); }},
        {"tensor 'x': expected 1 to 4 dimensions, found 0",
         [](GgufWriter& f) { f.tensor("x", {}, 0, floats({1})); }},
        {"tensor 'x': expected 1 to 4 dimensions, found 5",
         [](GgufWriter& f) {
             f.tensor("x", {1, 1, 1, 1, 1}, 0, floats({1}));
         }},
        {"expected dimensions from 1 on whose product fits 63 bits, found 0",
         [](GgufWriter& f) { f.tensor("x", {0}, 0, ""); }},
        {"product fits 63 bits, found 4294967296",
         [](GgufWriter& f) {
             f.tensor("x", {1ull << 32, 1ull << 32}, 0, "");
         }},
        {"tensor 'x': its size overflows",
         [](GgufWriter& f) { f.tensor("x", {1ull << 62}, 0, ""); }},
        {"tensor 'x': its size overflows",
         [](GgufWriter& f) { f.describe("x", {1}, 0, UINT64_MAX - 2); }},
        {"tensor 'x': expected a ggml type of f32",
         [](GgufWriter& f) { f.tensor("x", {1}, 99, floats({1})); }},
        {"mxfp4, found number 99", [](GgufWriter& f) { f.tensor("x", {1}, 99, floats({1})); }},
        {"mxfp4, found iq2_xxs (16)", [](GgufWriter& f) { f.tensor("x", {256}, 16, ""); }},
        {"expected rows in whole blocks of 32, found q8_0 (2, 16)",
         [](GgufWriter& f) {
             f.tensor("x", {16, 2}, 8, "");
         }},
        {"expected an offset in whole units of 32 bytes, found 4",
         [](GgufWriter& f) { f.describe("x", {1}, 0, 4); }},
        {"tensor 'x': its 4 bytes end at 1028 of the data, the file holds 128 (truncated?)",
         [](GgufWriter& f) { f.describe("x", {1}, 0, 1024); }},
        {"tensor 'x': its 8589934592 bytes end at ",
         [](GgufWriter& f) { f.tensor("x", {kHuge}, 0, ""); }},
        {"of the data, where 'b.weight' ends at 100",
         [](GgufWriter& f) { f.describe("x", {1}, 0, 64); }},
    };
    expect_refused("GGML" + small_file().bytes().substr(4), "which begins with GGUF");
    for (const Case& broken : cases) {
        GgufWriter writer = small_file();
        broken.change(writer);
        expect_refused(writer.bytes(), broken.expected);
    }
}

// A model of three files, of which a test changes one.
class GgufParts : public Gguf {
  protected:
    static constexpr int kParts = 3;

    GgufWriter part(int i) {
        GgufWriter file;
        if (i == 0) file.text("general.architecture", "gpt2");
        file.split(static_cast<uint16_t>(i), kParts, 4);
        for (int k = 0; k < (i == 1 ? 2 : 1); ++k)
            file.tensor(concat("t", i, k), {8}, 0, floats(std::vector<float>(8, value(i, k))));
        return file;
    }
    static float value(int i, int k) { return static_cast<float>(10 * i + k + 1); }
    std::filesystem::path part_path(int i) const {
        return path().parent_path() / concat("x-0000", i + 1, "-of-00003.gguf");
    }
    void write_parts() {
        for (int i = 0; i < kParts; ++i) test::write_text(part_path(i), part(i).bytes());
    }
    // What opening the first part says, whose message names part `named`.
    void expect_part_error(int named, const std::string& message) {
        try {
            GgufFile file(part_path(0));
            ADD_FAILURE() << "accepted; expected: " << message;
        } catch (const Error& error) {
            const std::string found = error.what();
            EXPECT_EQ(found.rfind(part_path(named).string() + ": ", 0), 0u) << found;
            EXPECT_NE(found.find(message), std::string::npos) << found;
        }
    }
    // The same of part `i` written otherwise.
    void expect_part_error(int i, const GgufWriter& other, int named, const std::string& message) {
        write_parts();
        test::write_text(part_path(i), other.bytes());
        expect_part_error(named, message);
    }
};

TEST_F(GgufParts, TheFirstOneOpensTheOthers) {
    write_parts();
    const GgufFile file(part_path(0));
    EXPECT_EQ(file.text("general.architecture"), "gpt2");
    ASSERT_EQ(file.tensors().size(), 4u);
    for (const auto& [name, tensor] : file.tensors()) {
        const float expected = value(name[1] - '0', name[2] - '0');
        EXPECT_EQ(tensor.as<float>()[7], expected) << name;
        file.forget(tensor);
        EXPECT_EQ(tensor.as<float>()[7], expected) << name;
    }
}

// gguf-split --no-tensor-first-split
TEST_F(GgufParts, TheFirstOneMayHaveKeysAlone) {
    GgufWriter first, second;
    first.split(0, 2, 1);
    second.split(1, 2, 1);
    second.tensor("a", {1}, 0, floats({3}));
    const auto folder = path().parent_path();
    test::write_text(folder / "y-00001-of-00002.gguf", first.bytes());
    test::write_text(folder / "y-00002-of-00002.gguf", second.bytes());
    EXPECT_EQ(GgufFile(folder / "y-00001-of-00002.gguf").tensors().at("a").as<float>()[0], 3);
}

// 0: gguf-split --merge. Their names may be any.
TEST_F(GgufParts, AFileOfNoneOrOnePartIsWhole) {
    for (const uint16_t count : {0, 1}) {
        GgufWriter writer;
        writer.split(0, count, 1);
        writer.tensor("a", {1}, 0, floats({3}));
        EXPECT_EQ(read(writer.bytes()).tensors().size(), 1u);
    }
}

TEST_F(GgufParts, WhatDoesNotFitTogetherIsNamed) {
    for (int missing = 1; missing < kParts; ++missing) {
        write_parts();
        std::filesystem::remove(part_path(missing));
        expect_part_error(missing, "No such file");
    }
    const auto split = [&](int i, uint16_t no, uint16_t count, int32_t tensors) {
        GgufWriter file;
        file.split(no, count, tensors);
        file.tensor(concat("t", i), {1}, 0, floats({1}));
        return file;
    };
    expect_part_error(1, split(1, 2, 3, 4), 1,
                      "key 'split.no': expected 1, as the other parts say, "
                      "found 2");
    expect_part_error(2, split(2, 2, 2, 4), 2,
                      "key 'split.count': expected 3, as the other parts "
                      "say, found 2");
    expect_part_error(2, split(2, 2, 3, 5), 2,
                      "key 'split.tensors.count': expected 4, as the other "
                      "parts say, found 5");
    expect_part_error(1, GgufWriter(), 1, "expected the key 'split.no', found none");
    expect_part_error(1, part(2), 1, "key 'split.no': expected 1");
    // One tensor fewer than the first part says.
    expect_part_error(1, split(1, 1, 3, 4), 0,
                      "key 'split.tensors.count': expected the 3 tensors of the 3 parts, found 4");
    GgufWriter twice = part(2);
    twice.tensor("t10", {1}, 0, floats({1}));
    expect_part_error(2, twice, 2, "tensor 't10' is in " + part_path(1).string() + " too");
    GgufWriter broken = part(2);
    broken.describe("x", {1}, 0, 1024);
    expect_part_error(2, broken, 2, "(truncated?)");
}

TEST_F(GgufParts, TheFirstPartIsAskedForByItsName) {
    write_parts();
    try {
        GgufFile file(part_path(1));
        ADD_FAILURE() << "accepted";
    } catch (const Error& error) {
        EXPECT_EQ(std::string(error.what()),
                  part_path(1).string() +
                      ": is part 2 of 3; give the first one, NAME-00001-of-00003.gguf");
    }
    expect_refused(part(0).bytes(),
                   "is part 1 of 3: expected a name that ends with -00001-of-00003.gguf");
    GgufWriter beyond;
    beyond.split(3, 3, 1);
    expect_refused(beyond.bytes(), "key 'split.no': expected a whole number from 0 to 2, found 3");
    GgufWriter negative;
    negative.key("split.count", 5, GgufWriter::number<int32_t>(-1));
    expect_refused(negative.bytes(), "key 'split.count': expected a whole number from 0 to 65535");
}

// What a header holds is bounded, however much of a file there is.
TEST_F(Gguf, AHeaderOf2GiBIsRefused) {
    GgufWriter writer;
    writer.key("x", 9, GgufWriter::number(0u) + GgufWriter::number<uint64_t>(1ull << 31));
    test::write_text(path(), writer.bytes());
    std::filesystem::resize_file(path(), (1ull << 31) + 4096);
    expect_error([&] { GgufFile{path()}; }, "expected a header of at most 67108864 bytes, found");
}

}  // namespace
}  // namespace hark
