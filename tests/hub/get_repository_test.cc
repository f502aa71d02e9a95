// Models of any repository, from a server that answers as Hugging Face does and has its large files
// at another address.
#include <gtest/gtest.h>

#include <cstdlib>

#include "core/models/models.h"
#include "hub/get_model.h"
#include "hub/model_record.h"
#include "support/error_of.h"
#include "support/expect.h"
#include "support/fake_hub.h"
#include "support/family_folder.h"
#include "support/tiny_gguf.h"

namespace hark::models {
namespace {

using test::FakeHub;
using test::HttpRequest;

namespace fs = std::filesystem;

constexpr const char* kToken = "hf_aVeryPrivateToken";

class GetRepository : public ::testing::Test {
  protected:
    void SetUp() override {
        for (const char* name : {"HF_TOKEN", "HF_TOKEN_PATH", "HF_HOME", "HF_ENDPOINT"})
            ::unsetenv(name);
        ::setenv("HOME", home_.path().c_str(), 1);
        ::unsetenv("XDG_CACHE_HOME");
    }
    void TearDown() override { SetUp(); }

    // With a server at HF_ENDPOINT.
    fs::path get(const std::string& name, const FakeHub& hub) {
        ::setenv("HF_ENDPOINT", hub.url().c_str(), 1);
        return get_from(name, "");
    }
    fs::path get_from(const std::string& name, const std::string& from) {
        Downloader downloader({30, 2, std::chrono::milliseconds(1), 1},
                              [](const std::string&, uint64_t, uint64_t) {});
        return get_model(wanted_model(name), hub_server(from), models_.path(), downloader,
                         [&](const DownloadSize& size) { size_ = size; });
    }
    std::string fails(const std::string& name, const FakeHub& hub) {
        return test::error_of([&] { get(name, hub); });
    }
    // No file of the models' folder has this text.
    void expect_nowhere(const std::string& text) const {
        for (const auto& file : fs::recursive_directory_iterator(models_.path())) {
            if (!file.is_regular_file()) continue;
            EXPECT_EQ(test::read_text(file.path()).find(text), std::string::npos) << file.path();
        }
    }
    void write_ggufs() const {
        test::write_text(source_.path() / "m-F32.gguf", test::tiny_gguf()[0]);
        const std::vector<std::string> parts = test::tiny_gguf(2);
        test::write_text(source_.path() / "m-Q8_0-00001-of-00002.gguf", parts[0]);
        test::write_text(source_.path() / "m-Q8_0-00002-of-00002.gguf", parts[1]);
    }

    test::TemporaryDirectory home_, models_, source_;
    DownloadSize size_;
};

std::vector<std::string> names_in(const fs::path& folder) {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder))
        names.push_back(entry.path().filename());
    std::sort(names.begin(), names.end());
    return names;
}

TEST_F(GetRepository, AFolderOfSafetensors) {
    test::write_tiny_qwen2(source_.path());
    fs::create_directories(source_.path() / "onnx");
    for (const char* name : {"README.md", "pytorch_model.bin", "onnx/model.onnx", "x-Q4_0.gguf"})
        test::write_text(source_.path() / name, "not wanted");
    const FakeHub hub("owner/tiny", source_.path());
    const fs::path path = get("owner/tiny", hub);
    EXPECT_EQ(path, models_.path() / "owner/tiny");
    const std::vector<std::string> expected = {"chat_template.jinja", "config.json",
                                               "hark-model.json",     "model.safetensors",
                                               "tokenizer.json",      "tokenizer_config.json"};
    EXPECT_EQ(names_in(path), expected);
    EXPECT_EQ(names_in(models_.path() / "owner"), std::vector<std::string>{"tiny"});
    EXPECT_EQ(size_.files, 5u);
    EXPECT_EQ(size_.license, "apache-2.0");
    EXPECT_EQ(size_.commit, FakeHub::kCommit);
    const ModelRecord record = read_record(path).value();
    EXPECT_EQ(record.server, hub.url());
    EXPECT_EQ(record.repository, "owner/tiny");
    EXPECT_EQ(record.revision, "main");
    EXPECT_EQ(record.commit, FakeHub::kCommit);
    EXPECT_EQ(record.license, "apache-2.0");
    // Sizes and hashes are in the list: no file was asked for before.
    for (const HttpRequest& r : hub.requests()) EXPECT_EQ(r.method, "GET");
    const size_t requests = hub.requests().size();
    EXPECT_EQ(get("owner/tiny", hub), path);  // is there
    EXPECT_EQ(hub.requests().size(), requests);
}

// What says how texts become vectors is in a folder.
TEST_F(GetRepository, AnEmbeddingModelHasItsPooling) {
    test::write_tiny_qwen2(source_.path());
    gpt::write_embedding_files(source_.path(), gpt::Pooling::mean, 64);
    test::write_text(source_.path() / "config_sentence_transformers.json",
                     R"({"prompts": {"query": "Find: "}})");
    const FakeHub hub("owner/tiny", source_.path());
    const fs::path path = get("owner/tiny", hub);
    const auto model = gpt::open_model(path);
    EXPECT_EQ(model->embedding_settings().pooling, gpt::Pooling::mean);
    EXPECT_EQ(model->embedding_settings().prompts.at("query"), "Find: ");
    EXPECT_EQ(names_in(path / "1_Pooling"), std::vector<std::string>{"config.json"});
    EXPECT_EQ(size_.files, 8u);
}

TEST_F(GetRepository, AListWithoutSizesIsCompletedByTheAnswersOfTheFiles) {
    test::write_tiny_qwen2(source_.path());
    FakeHub hub("owner/tiny", source_.path());
    hub.says_sizes = false;
    EXPECT_EQ(names_in(get("owner/tiny", hub)).size(), 6u);
    EXPECT_GT(size_.bytes, 100'000u);
}

TEST_F(GetRepository, OneGgufAndItsPartsByType) {
    write_ggufs();
    const FakeHub hub("owner/ggufs", source_.path());
    const fs::path one = get("owner/ggufs:f32", hub);
    EXPECT_EQ(one, models_.path() / "owner/ggufs:F32/m-F32.gguf");
    EXPECT_EQ(read_record(one).value().license, "apache-2.0");
    const fs::path parts = get("owner/ggufs:Q8_0", hub);
    EXPECT_EQ(parts, models_.path() / "owner/ggufs:Q8_0/m-Q8_0-00001-of-00002.gguf");
    EXPECT_EQ(size_.files, 2u);
    const fs::path file = get("owner/ggufs:m-F32.gguf", hub);
    EXPECT_EQ(file, models_.path() / "owner/ggufs:m-F32.gguf/m-F32.gguf");
    test::expect_contains(fails("owner/ggufs", hub), "it has F32, Q8_0");
    test::expect_contains(fails("owner/ggufs:Q4_0", hub),
                          "no GGUF file of type 'Q4_0' (it has F32, Q8_0)");
    EXPECT_EQ(names_in(models_.path() / "owner").size(), 3u);  // nothing is left of these
}

TEST_F(GetRepository, RevisionsAreRecordedAndNotMixed) {
    test::write_tiny_qwen2(source_.path());
    FakeHub hub("owner/tiny", source_.path());
    hub.branch = "refs%2Fpr%2F1";
    test::expect_contains(fails("owner/tiny", hub),
                          "owner/tiny: the server has no revision 'main'");
    EXPECT_TRUE(fs::is_empty(models_.path()));
    const fs::path path = get("owner/tiny@refs/pr/1", hub);
    EXPECT_EQ(read_record(path).value().revision, "refs/pr/1");
    EXPECT_EQ(get("owner/tiny@refs/pr/1", hub), path);
    EXPECT_EQ(get("owner/tiny@" + FakeHub::kCommit.substr(0, 9), hub), path);
    test::expect_contains(fails("owner/tiny@v2", hub),
                          "is revision 'refs/pr/1' (commit " + FakeHub::kCommit +
                              "), not 'v2'; to replace it, first run: hark model rm owner/tiny");
}

TEST_F(GetRepository, TheTokenGoesToItsServerAlone) {
    test::write_tiny_qwen2(source_.path());
    FakeHub hub("owner/tiny", source_.path());
    hub.token = kToken;
    ::setenv("HF_TOKEN", kToken, 1);
    get("owner/tiny", hub);
    for (const HttpRequest& r : hub.requests())
        EXPECT_EQ(r.authorization, std::string("Bearer ") + kToken) << r.path;
    ASSERT_FALSE(hub.stored_requests().empty());
    for (const HttpRequest& r : hub.stored_requests()) EXPECT_EQ(r.authorization, "") << r.path;
    expect_nowhere(kToken);
    expect_nowhere(FakeHub::kSignature);
}

TEST_F(GetRepository, ARedirectToAnotherAddressAndBackHasNoToken) {
    std::string home;
    const test::HttpServer other([&](const HttpRequest&) {
        test::HttpResponse response{302};
        response.headers["Location"] = home + "/end";
        return response;
    });
    const test::HttpServer server([&](const HttpRequest& r) {
        if (r.path == "/end") return test::HttpResponse{.body = "here"};
        test::HttpResponse response{302};
        response.headers["Location"] = other.url() + "/x";
        return response;
    });
    home = server.url();
    HttpClient client(5);
    client.authorize(home, kToken);
    EXPECT_EQ(client.text(home + "/begin", 100), "here");
    EXPECT_NE(server.requests().front().authorization, "");
    EXPECT_EQ(server.requests().back().authorization, "");
    EXPECT_EQ(other.requests().front().authorization, "");
    EXPECT_THROW(client.text(home + "/end", 3), Error);
    EXPECT_THROW(client.authorize("http://example.org", kToken), Error);
}

TEST_F(GetRepository, TheTokensPlaces) {
    const test::TemporaryDirectory other;
    ::setenv("HF_ENDPOINT", "http://127.0.0.1:9/", 1);
    EXPECT_EQ(hub_server("").url, "http://127.0.0.1:9");
    EXPECT_EQ(hub_server("").token, "");
    fs::create_directories(home_.path() / ".cache/huggingface");
    test::write_text(home_.path() / ".cache/huggingface/token", "hf_home\n");
    EXPECT_EQ(hub_server("").token, "hf_home");
    test::write_text(other.path() / "token", " hf_other ");
    ::setenv("HF_HOME", other.path().c_str(), 1);
    EXPECT_EQ(hub_server("").token, "hf_other");
    test::write_text(other.path() / "mine", "hf_mine");
    ::setenv("HF_TOKEN_PATH", (other.path() / "mine").c_str(), 1);
    EXPECT_EQ(hub_server("").token, "hf_mine");
    ::setenv("HF_TOKEN", "hf_first", 1);
    EXPECT_EQ(hub_server("").token, "hf_first");
    // A server of --from has it only if it is the same one.
    EXPECT_EQ(hub_server("http://127.0.0.1:9").token, "hf_first");
    for (const char* from : {"http://127.0.0.1:10", "https://mirror.example.org",
                             "https://huggingface.co", "http://example.org"})
        EXPECT_EQ(hub_server(from).token, "") << from;
    ::setenv("HF_TOKEN", "hf_sec ret", 1);
    const std::string bad = test::error_of([] { hub_server(""); });
    test::expect_contains(bad, "HF_TOKEN: expected a token");
    EXPECT_EQ(bad.find("ret"), std::string::npos);
    ::unsetenv("HF_TOKEN");
    test::write_text(other.path() / "mine", "hf_a\nhf_b");
    test::expect_contains(test::error_of([] { hub_server(""); }), "mine: expected a token");
    for (const char* endpoint :
         {"http://huggingface.co", "https://me:pw@x.org", "huggingface.co"}) {
        ::setenv("HF_ENDPOINT", endpoint, 1);
        const std::string wrong = test::error_of([] { hub_server(""); });
        test::expect_contains(wrong, "HF_ENDPOINT: expected an https address");
        EXPECT_EQ(wrong.find("pw"), std::string::npos);
    }
}

TEST_F(GetRepository, WhatIsGatedNamesThePage) {
    test::write_tiny_qwen2(source_.path());
    FakeHub hub("owner/tiny", source_.path());
    hub.token = kToken;
    EXPECT_EQ(fails("owner/tiny", hub),
              "owner/tiny: this repository is gated (HTTP status 401); accept its licence at "
              "https://huggingface.co/owner/tiny and set HF_TOKEN to a token of your account");
    ::setenv("HF_TOKEN", "hf_notAccepted", 1);
    const std::string other = fails("owner/tiny", hub);
    test::expect_contains(
        other,
        "gated (HTTP status 403); your token gives no access: accept its licence at "
        "https://huggingface.co/owner/tiny");
    EXPECT_EQ(other.find("hf_notAccepted"), std::string::npos);
    test::expect_contains(fails("owner/none", hub),
                          "owner/none: the server has no such repository (HTTP ");
    ::unsetenv("HF_TOKEN");
    test::expect_contains(
        fails("owner/none", hub),
        "owner/none: this repository is gated, private or not there (HTTP status 401)");
    ::unsetenv("HF_ENDPOINT");
    ::setenv("HF_TOKEN", kToken, 1);
    test::expect_contains(test::error_of([&] { get_from("owner/tiny", hub.url()); }),
                          "no token is sent to --from " + hub.url());
    EXPECT_EQ(hub.requests().back().authorization, "");
}

TEST_F(GetRepository, ABusyServerIsWaitedForOrNamed) {
    test::write_tiny_qwen2(source_.path());
    FakeHub hub("owner/tiny", source_.path());
    hub.busy = 1;
    get("owner/tiny", hub);
    FakeHub slow("owner/tiny", source_.path());
    slow.busy = 1;
    slow.retry_after = "3600";
    fs::remove_all(models_.path() / "owner");
    const std::string message = fails("owner/tiny", slow);
    test::expect_contains(message,
                          "HTTP status 429: too many requests; run the same command again later");
    test::expect_contains(message, "asks to wait 3600 seconds");
}

TEST_F(GetRepository, ABrokenDownloadIsContinued) {
    write_ggufs();
    FakeHub hub("owner/ggufs", source_.path());
    hub.cut = 30'000;
    ::setenv("HF_TOKEN", kToken, 1);
    test::expect_contains(fails("owner/ggufs:F32", hub), "gave up after 2 attempts");
    EXPECT_EQ(names_in(models_.path() / "owner"), std::vector<std::string>{".ggufs:F32.part"});
    expect_nowhere(kToken);
    hub.cut = SIZE_MAX;
    hub.commit = std::string(40, 'b');  // which has the same file
    EXPECT_EQ(test::read_text(get("owner/ggufs:F32", hub)), test::tiny_gguf()[0]);
    EXPECT_EQ(hub.stored_requests().back().range, "bytes=60000-");
}

TEST_F(GetRepository, OtherContentThanTheListSaysIsRefused) {
    write_ggufs();
    FakeHub hub("owner/ggufs", source_.path());
    hub.change_list = [](nlohmann::json& root) {
        for (auto& file : root["siblings"])
            if (file.contains("lfs")) file["lfs"]["sha256"] = std::string(64, '0');
    };
    test::expect_contains(fails("owner/ggufs:F32", hub), "wrong SHA-256");
    hub.more_files = {"../../.bashrc"};
    test::expect_contains(fails("owner/ggufs:F32", hub),
                          "expected a file's name, found \"../../.bashrc\"");
    EXPECT_TRUE(fs::is_empty(models_.path()));
}

TEST_F(GetRepository, ShardsAreFilesOfTheRepository) {
    test::write_tiny_qwen2(source_.path());
    fs::rename(source_.path() / "model.safetensors",
               source_.path() / "model-00001-of-00001.safetensors");
    const auto index = [&](const std::string& shard) {
        test::write_text(source_.path() / "model.safetensors.index.json",
                         nlohmann::json{{"weight_map", {{"x", shard}}}}.dump());
    };
    index("model-00001-of-00001.safetensors");
    const FakeHub hub("owner/tiny", source_.path());
    EXPECT_EQ(names_in(get("owner/tiny", hub)).size(), 7u);
    fs::remove_all(models_.path() / "owner");
    index("model-00002-of-00002.safetensors");
    test::expect_contains(fails("owner/tiny", hub), "which the repository does not have");
    index("../model.safetensors");
    test::expect_contains(fails("owner/tiny", hub), "expected a file's name");
}

TEST_F(GetRepository, AFamilyThatIsNotReadIsKnownBeforeTheWeights) {
    test::write_tiny_qwen2(source_.path());
    test::write_text(source_.path() / "config.json", "{\"model_type\": \"bert\"}");
    const FakeHub hub("owner/bert", source_.path());
    test::expect_contains(fails("owner/bert", hub), "bert");
    EXPECT_TRUE(hub.stored_requests().empty());
    EXPECT_TRUE(fs::is_empty(models_.path()));
}

TEST_F(GetRepository, APublishedModelHasARecordToo) {
    const FakeHub hub("openai/whisper-tiny", test::source_dir() / "models/whisper-demo");
    const fs::path path = get("tiny", hub);
    EXPECT_EQ(path, models_.path() / "whisper-tiny");
    EXPECT_EQ(read_record(path).value().commit, FakeHub::kCommit);
}

}  // namespace
}  // namespace hark::models
