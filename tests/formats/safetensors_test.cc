#include <gtest/gtest.h>

#include "core/error.h"
#include "formats/safetensors.h"
#include "formats/tensor_source.h"
#include "support/process.h"

namespace hark {
namespace {

std::string error_of(const std::string& json) {
    try {
        parse_safetensors_header(json, "here");
    } catch (const Error& error) {
        return error.what();
    }
    return "";
}

TEST(Safetensors, ParsesAHeader) {
    const SafetensorsHeader header = parse_safetensors_header(
        R"({"b":{"dtype":"F16","shape":[2],"data_offsets":[24,28]},
            "a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},
            "__metadata__":{"k":"v"}})",
        "here");
    ASSERT_EQ(header.tensors.size(), 2u);
    EXPECT_EQ(header.tensors[0].name, "a");
    EXPECT_EQ(header.data_bytes, 28u);
    EXPECT_EQ(header.metadata.at("k"), "v");
}

TEST(Safetensors, RefusesWhatDoesNotFit) {
    const char* cases[][2] = {
        {"[]", "not a JSON object"},
        {"{", "not a JSON object"},
        {R"({"a":1})", "expected dtype"},
        {R"({"a":{"dtype":"F33","shape":[1],"data_offsets":[0,4]}})", "unknown dtype"},
        {R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", "not a whole number"},
        {R"({"a":{"dtype":"F32","shape":[1.5],"data_offsets":[0,4]}})", "not a whole number"},
        {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", "needs 8 bytes"},
        {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})", "needs 4 bytes"},
        {R"({"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0]}})",
         "overflows"},
        {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},
             "b":{"dtype":"F32","shape":[1],"data_offsets":[2,6]}})",
         "overlap"},
        {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[8,12]}})", "holes"},
        {R"({"__metadata__":{"k":1}})", "not a string"},
        {R"({"__metadata__":[]})", "not an object"},
    };
    for (const auto& [json, expected] : cases) {
        EXPECT_NE(error_of(json).find(expected), std::string::npos) << json << error_of(json);
        EXPECT_EQ(error_of(json).rfind("here", 0), 0u) << json;
    }
}

TEST(Safetensors, FilesAreCheckedAgainstTheirSize) {
    test::TemporaryDirectory directory;
    const std::filesystem::path path = directory.path() / "x.safetensors";
    SafetensorsHeader header;
    header.tensors.push_back({"a", "F32", {2}, 0, 8});
    const std::string whole = format_safetensors_header(header) + std::string(8, 'x');
    for (size_t size = 0; size < whole.size(); ++size) {
        test::write_text(path, whole.substr(0, size));
        EXPECT_THROW(SafetensorsFile{path}, Error) << size;
    }
    test::write_text(path, whole + "y");
    EXPECT_THROW(SafetensorsFile{path}, Error);
    test::write_text(path, whole);
    const SafetensorsFile file(path);
    EXPECT_EQ(describe(file.tensor(*file.find("a"))), "f32 (2)");
    EXPECT_EQ(file.find("b"), nullptr);
    EXPECT_THROW(SafetensorsFile{directory.path()}, Error);
    EXPECT_THROW(SafetensorsFile{directory.path() / "none"}, Error);
}

TEST(Safetensors, ADirectoryAcceptsThePrefixAndChecksShapes) {
    test::TemporaryDirectory directory;
    SafetensorsHeader header;
    header.tensors = {{"model.a", "F32", {2}, 0, 8}, {"b", "F32", {1, 1}, 8, 12}};
    test::write_text(directory.path() / "model.safetensors",
                     format_safetensors_header(header) + std::string(12, '\0'));
    SafetensorsDirectory source(directory.path(), "model.");
    EXPECT_EQ(source.take("a", {2}).size(), 2);
    EXPECT_EQ(source.take("b", {1, 1}).size(), 1);
    EXPECT_TRUE(source.has("a"));
    EXPECT_FALSE(source.has("c"));
    EXPECT_THROW(source.take("a", {3}), Error);
    EXPECT_THROW(source.take("b", {1}), Error);
    EXPECT_THROW(source.take("c", {1}), Error);
}

}  // namespace
}  // namespace hark
