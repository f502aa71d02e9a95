// What a server says of a repository, which of its files are a model, and what is refused.
#include "hub/repository.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "core/json/json.h"
#include "core/models/models.h"
#include "hub/http_address.h"
#include "support/error_of.h"

namespace hark::models {
namespace {

using nlohmann::json;

const std::string kCommit(40, 'a');

std::string listing(const std::vector<std::string>& names, const json& more = json::object()) {
    json root = {{"sha", kCommit}, {"siblings", json::array()}};
    for (const std::string& name : names)
        root["siblings"].push_back({{"rfilename", name}, {"size", 1}, {"blobId", kCommit}});
    root.update(more);
    return root.dump();
}

Repository of(const std::vector<std::string>& names) {
    return parse_repository(listing(names), "list");
}

std::vector<std::string> selected(const std::vector<std::string>& names, const std::string& what) {
    std::vector<std::string> found;
    const RepositoryName name = {"o/r", "", what};
    for (const ListedFile& file : selected_files(of(names), name)) found.push_back(file.name);
    return found;
}

std::string refusal(const std::vector<std::string>& names, const std::string& what) {
    return test::error_of([&] { selected(names, what); });
}

std::vector<std::string> folder(const std::vector<std::string>& names) {
    std::vector<std::string> found;
    for (const ListedFile& file : folder_files(of(names), "o/r")) found.push_back(file.name);
    return found;
}

using Names = std::vector<std::string>;

TEST(RepositoryName, ItsParts) {
    const RepositoryName name = parse_repository_name("Qwen/Qwen2.5-0.5B@refs/pr/1:sub/x.gguf");
    EXPECT_EQ(name.repository, "Qwen/Qwen2.5-0.5B");
    EXPECT_EQ(name.revision, "refs/pr/1");
    EXPECT_EQ(name.selection, "sub/x.gguf");
    EXPECT_EQ(name.installed(), "Qwen/Qwen2.5-0.5B:x.gguf");
    EXPECT_EQ(parse_repository_name("o/r:q4_k_m").installed(), "o/r:Q4_K_M");
    EXPECT_EQ(parse_repository_name("o/r@v1").installed(), "o/r");
    EXPECT_EQ(percent_encoded("refs/pr/1 %", false), "refs%2Fpr%2F1%20%25");
    EXPECT_EQ(percent_encoded("a b/\xC3\xA9.gguf", true), "a%20b/%C3%A9.gguf");
}

TEST(RepositoryName, WhatIsNone) {
    for (const char* text :
         {"",         "/",           "o/",         "/r",       "o/r/x",         "../r",
          "o/..",     "o/.r",        "-o/r",       "o r/x",    "o/r@",          "o/r:",
          "o/r@..",   "o/r@a..b",    "o/r@.",      "o/r@a b",  "o/r:../x.gguf", "o/r:/x.gguf",
          "o/r:a\\b", "o/r:a//b",    "o/r:a/q4_0", "o/r:a\nb", "o/r?x",         "o/r#x",
          "o/r%2e",   "o\xC3\xA9/r", "model"})
        EXPECT_THROW(parse_repository_name(text), UsageError) << text;
    EXPECT_THROW(parse_repository_name("o/" + std::string(97, 'r')), UsageError);
    EXPECT_THROW(parse_repository_name("o/r@" + std::string(201, 'r')), UsageError);
}

TEST(Repository, CommitSizesHashesAndLicense) {
    const std::string sha256(64, 'b');
    const json more = {{"siblings",
                        {{{"rfilename", "config.json"}, {"size", 12}, {"blobId", kCommit}},
                         {{"rfilename", "model.safetensors"},
                          {"size", 130},
                          {"blobId", kCommit},
                          {"lfs", {{"sha256", sha256}, {"size", 99}}}},
                         {{"rfilename", "a"}, {"size", -1}, {"blobId", "x"}}}},
                       {"cardData", {{"license", "llama3.1"}}}};
    const Repository repository = parse_repository(listing({}, more), "list");
    EXPECT_EQ(repository.commit, kCommit);
    EXPECT_EQ(repository.license, "llama3.1");
    const RemoteFile& config = repository.find("config.json")->remote;
    EXPECT_TRUE(config.found);
    EXPECT_EQ(config.bytes, 12u);
    EXPECT_EQ(config.git_blob, kCommit);
    const RemoteFile& weights = repository.find("model.safetensors")->remote;
    EXPECT_EQ(weights.bytes, 99u);
    EXPECT_EQ(weights.sha256, sha256);
    EXPECT_EQ(weights.git_blob, "");
    EXPECT_FALSE(repository.find("a")->remote.found);
}

TEST(Repository, TheLicenseFromCardOrTag) {
    const auto license = [](const json& more) {
        return parse_repository(listing({}, more), "list").license;
    };
    EXPECT_EQ(license({{"cardData", {{"license", {"mit", "x"}}}}}), "mit");
    EXPECT_EQ(license({{"cardData", {{"license", "other"}, {"license_name", "gemma-2"}}}}),
              "gemma-2");
    EXPECT_EQ(license({{"cardData", nullptr}, {"tags", {"gguf", "license:apache-2.0"}}}),
              "apache-2.0");
    EXPECT_EQ(license({{"cardData", {{"license", "\x1b[31mred"}}}}), "");
    EXPECT_EQ(license({{"cardData", {{"license", 7}}}, {"tags", {3}}}), "");
    EXPECT_EQ(license(json::object()), "");
}

TEST(Repository, FilesWithOtherNamesAreRefused) {
    for (const std::string name : {"../config.json", "/etc/passwd", "a/../../b", "a\\b", "..", ".",
                                   "", "a//b", "a/", "a\nb", "a\x1b[2J", "a\x7f"})
        EXPECT_NE(test::error_of([&] { of({name}); }).find("list: expected a file's name"),
                  std::string::npos)
            << name;
    EXPECT_THROW(of({std::string(256, 'a')}), Error);
    std::string deep;
    for (int i = 0; i < 300; ++i) deep += "abc/";
    EXPECT_THROW(of({deep + "x"}), Error);
    EXPECT_THROW(parse_repository(listing({}, {{"siblings", {{{"size", 3}}}}}), "list"), Error);
    EXPECT_THROW(parse_repository(listing({}, {{"siblings", {7}}}), "list"), Error);
    EXPECT_THROW(parse_repository(listing({}, {{"sha", "main"}}), "list"), Error);
    EXPECT_THROW(parse_repository("[]", "list"), Error);
    EXPECT_THROW(parse_repository("<html>", "list"), Error);
}

// Reading takes time and memory in proportion to the text.
TEST(Repository, ALongListAndADeepOne) {
    std::string files = "{\"rfilename\": \"config.json\"}";
    for (int i = 0; i < 200'000; ++i) files += ",{\"rfilename\": \"a\"}";
    const std::string text = "{\"sha\": \"" + kCommit + "\", \"siblings\": [" + files + "]}";
    EXPECT_EQ(parse_repository(text, "list").files.size(), 200'001u);
    const std::string deep(100'000, '[');
    EXPECT_EQ(test::error_of([&] { parse_repository(deep, "list"); }),
              "list: JSON is nested deeper than 64 levels");
    const std::string quoted = "{\"sha\": \"" + std::string(100, '[') + "\\\"[\"}";
    EXPECT_NE(test::error_of([&] { parse_repository(quoted, "list"); }).find("'sha'"),
              std::string::npos);
}

TEST(FolderFiles, WhatALanguageModelNeeds) {
    EXPECT_EQ(folder({"README.md", "config.json", "flax_model.msgpack", "generation_config.json",
                      "model.safetensors", "onnx/model.onnx", "original/consolidated.00.pth",
                      "pytorch_model.bin", "tokenizer.json", "tokenizer.model", "x.gguf",
                      "chat_template.jinja", "model.safetensors.index.json"}),
              (Names{"config.json", "generation_config.json", "tokenizer.json", "tokenizer.model",
                     "chat_template.jinja", "model.safetensors"}));
    EXPECT_EQ(
        folder({"config.json", "model-00001-of-00002.safetensors", "model.safetensors.index.json"})
            .back(),
        "model.safetensors.index.json");
    EXPECT_EQ(folder({"config.json", "model.bin", "vocabulary.json"}),
              (Names{"config.json", "vocabulary.json", "model.bin"}));
}

TEST(FolderFiles, WithoutWeightsTheErrorSaysWhatThereIs) {
    const auto message = [](const Names& names) { return test::error_of([&] { folder(names); }); };
    EXPECT_EQ(message({"README.md", "m-Q4_K_M.gguf", "m.Q8_0.gguf", "mmproj-F16.gguf"}),
              "o/r: the repository holds GGUF files; give o/r:TYPE or o/r:FILE (it has Q4_K_M, "
              "Q8_0)");
    EXPECT_NE(message({"config.json", "pytorch_model.bin"}).find("found config.json, pytorch"),
              std::string::npos);
    EXPECT_NE(message({}).find("found no files"), std::string::npos);
}

TEST(SelectedFiles, ATypeIsAWordOfItsOwn) {
    const Names names = {"m-Q4_K_M.gguf", "m-Q4_K_S.gguf",   "m-IQ4_XS.gguf", "m.f16.gguf",
                         "m-Q8_0.gguf",   "mmproj-f16.gguf", "m_bf16.gguf",   "README.md"};
    EXPECT_EQ(selected(names, "q4_k_m"), Names{"m-Q4_K_M.gguf"});
    EXPECT_EQ(selected(names, "F16"), Names{"m.f16.gguf"});
    EXPECT_EQ(selected(names, "BF16"), Names{"m_bf16.gguf"});
    for (const char* type : {"Q4_K", "Q4_XS", "K", "Q2_K", "8", "gg"})
        EXPECT_NE(refusal(names, type)
                      .find("o/r: no GGUF file of type '" + std::string(type) +
                            "' (it has BF16, F16, IQ4_XS, Q4_K_M, Q4_K_S, Q8_0)"),
                  std::string::npos)
            << refusal(names, type);
    EXPECT_EQ(refusal({"a-Q8_0.gguf", "b/b-q8_0.gguf"}, "Q8_0"),
              "o/r: 'Q8_0' is in the names of 2 files; give one of them after the colon: "
              "a-Q8_0.gguf, b/b-q8_0.gguf");
    EXPECT_NE(refusal({"config.json"}, "Q8_0").find("(it has no GGUF files)"), std::string::npos);
}

TEST(SelectedFiles, AFileByItsName) {
    const Names names = {"a/x.gguf", "b/x.gguf", "y.gguf", "ggml-small.bin", "mmproj-F16.gguf"};
    EXPECT_EQ(selected(names, "y.gguf"), Names{"y.gguf"});
    EXPECT_EQ(selected(names, "a/x.gguf"), Names{"a/x.gguf"});
    EXPECT_EQ(selected(names, "ggml-small.bin"), Names{"ggml-small.bin"});
    EXPECT_EQ(selected(names, "mmproj-F16.gguf"), Names{"mmproj-F16.gguf"});
    EXPECT_NE(refusal(names, "x.gguf").find("is in the names of 2 files"), std::string::npos);
    EXPECT_EQ(refusal(names, "z.gguf"),
              "o/r: no file 'z.gguf' (it has a/x.gguf, b/x.gguf, ggml-small.bin, mmproj-F16.gguf, "
              "y.gguf)");
    EXPECT_NE(refusal({"a/.x.gguf"}, ".x.gguf").find("does not begin with a dot"),
              std::string::npos);
}

TEST(SelectedFiles, AllPartsOfASplitOne) {
    const Names parts = {"d/m-Q4_K_M-00001-of-00003.gguf", "d/m-Q4_K_M-00002-of-00003.gguf",
                         "d/m-Q4_K_M-00003-of-00003.gguf"};
    EXPECT_EQ(selected(parts, "Q4_K_M"), parts);
    EXPECT_EQ(selected(parts, parts[1]), parts);
    EXPECT_EQ(selected(parts, "m-Q4_K_M-00001-of-00003.gguf"), parts);
    EXPECT_EQ(refusal({parts[0], parts[2]}, "Q4_K_M"),
              "o/r: d/m-Q4_K_M-00001-of-00003.gguf: expected 3 parts, found 2");
    EXPECT_NE(refusal({"m-00004-of-00003.gguf"}, "Q8_0").find("no GGUF file"), std::string::npos);
}

TEST(Address, WhatATokenIsSentTo) {
    for (const char* url : {"https://huggingface.co", "http://127.0.0.1:80", "http://localhost:1/x",
                            "http://[::1]:8", "http://127.9.9.9"})
        EXPECT_TRUE(is_private(url)) << url;
    for (const char* url :
         {"http://huggingface.co", "http://127.0.0.1.evil.org", "http://localhost.evil.org",
          "http://127.0.0.1@evil.org", "https://me:secret@huggingface.co", "ftp://127.0.0.1",
          "file:///x", "huggingface.co", "", "http://10.0.0.1"})
        EXPECT_FALSE(is_private(url)) << url;
    EXPECT_EQ(address_of("https://A.org/x"), address_of("HTTPS://a.org:443/y"));
    EXPECT_NE(address_of("https://a.org"), address_of("https://a.org:444"));
    EXPECT_NE(address_of("https://a.org"), address_of("http://a.org"));
    EXPECT_TRUE(is_token("hf_abc"));
    for (const std::string text : {"", "a b", "a\r\nX: y", "a\tb", "\xC3\xA9"})
        EXPECT_FALSE(is_token(text));
    EXPECT_FALSE(is_token(std::string(1001, 'a')));
}

}  // namespace
}  // namespace hark::models
