// A whole model from a mirror that behaves as Hugging Face does; it has the demonstration models.
#include "hub/get_model.h"

#include <gtest/gtest.h>

#include "formats/safetensors.h"
#include "hub/digest.h"
#include "support/http_server.h"
#include "support/process.h"

namespace hark::models {
namespace {

using test::HttpRequest;
using test::HttpResponse;
using test::HttpServer;

namespace fs = std::filesystem;

const std::string kWhisper = "/openai/whisper-tiny/resolve/main/";

// Weights are elsewhere, with their SHA-256 on the way there; other files have git's name.
HttpResponse hub(const HttpRequest& request, const std::string& prefix, const fs::path& directory) {
    const bool stored = request.path.starts_with("/stored/");
    const std::string name = fs::path(request.path).filename();
    const fs::path file = directory / name;
    if ((!stored && request.path != prefix + name) || !fs::exists(file)) return {404};
    if (stored || !name.ends_with(".safetensors")) {
        HttpResponse response = in_parts(request, test::read_text(file));
        response.headers["ETag"] = "\"" + git_blob_of(file) + "\"";
        response.headers["X-Repo-Commit"] = "0123";
        return response;
    }
    HttpResponse response{302};
    response.headers = {{"Location", "/stored/" + name},
                        {"X-Linked-ETag", "\"" + sha256_of(file) + "\""},
                        {"X-Linked-Size", std::to_string(fs::file_size(file))}};
    return response;
}

class GetModel : public ::testing::Test {
  protected:
    fs::path get(const std::string& name, const std::string& server) {
        Downloader downloader({30, 2, std::chrono::milliseconds(1)},
                              [](const std::string&, uint64_t, uint64_t) {});
        return get_model(wanted_model(name), hub_server(server), home_.path(), downloader,
                         [&](const DownloadSize& size) {
                             files_ = size.files;
                             bytes_ = size.bytes;
                         });
    }
    std::string fails(const std::string& name, const std::string& server) {
        try {
            get(name, server);
        } catch (const Error& error) {
            return error.what();
        }
        return "nothing was thrown";
    }
    static std::vector<std::string> names_in(const fs::path& directory) {
        std::vector<std::string> names;
        for (const auto& entry : fs::directory_iterator(directory))
            names.push_back(entry.path().filename());
        std::sort(names.begin(), names.end());
        return names;
    }

    test::TemporaryDirectory home_, source_;
    size_t files_ = 0;
    uint64_t bytes_ = 0;
    const fs::path whisper_ = test::source_dir() / "models/whisper-demo";
    const fs::path gpt_ = test::source_dir() / "models/gpt-demo";
};

TEST_F(GetModel, AWhisperModelFileByFile) {
    const HttpServer server([&](const HttpRequest& r) { return hub(r, kWhisper, whisper_); });
    const fs::path path = get("tiny", server.url() + "/");
    EXPECT_EQ(path, home_.path() / "whisper-tiny");
    EXPECT_EQ(names_in(home_.path()), std::vector<std::string>{"whisper-tiny"});
    EXPECT_EQ(names_in(path), names_in(whisper_));
    for (const std::string& name : names_in(path))
        EXPECT_EQ(test::read_text(path / name), test::read_text(whisper_ / name)) << name;
    uint64_t bytes = 0;
    for (const std::string& name : names_in(path)) bytes += fs::file_size(path / name);
    EXPECT_EQ(files_, names_in(path).size());
    EXPECT_EQ(bytes_, bytes);
    // An installed model is not downloaded again.
    const size_t requests = server.requests().size();
    EXPECT_EQ(get("whisper-tiny", server.url()), path);
    EXPECT_EQ(server.requests().size(), requests);
}

TEST_F(GetModel, AGptModelInShards) {
    fs::copy(gpt_, source_.path(), fs::copy_options::recursive);
    const std::string weights = test::read_text(gpt_ / "model.safetensors");
    fs::remove(source_.path() / "model.safetensors");
    // The tensors in two halves, each a file of its own.
    const SafetensorsFile whole(gpt_ / "model.safetensors");
    std::string index = "{\"weight_map\": {";
    const char* names[] = {"model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"};
    const size_t half = whole.entries().size() / 2, end = whole.entries().size();
    for (size_t shard = 0; shard < 2; ++shard) {
        SafetensorsHeader header;
        std::string data;
        for (size_t i = shard * half; i < (shard == 0 ? half : end); ++i) {
            TensorEntry entry = whole.entries()[i];
            const Tensor tensor = whole.tensor(entry);
            entry.begin = data.size();
            data.append(static_cast<const char*>(tensor.data), tensor.bytes());
            entry.end = data.size();
            header.tensors.push_back(entry);
            index += (i == 0 ? "\"" : ", \"") + entry.name + "\": \"" + names[shard] + "\"";
        }
        test::write_text(source_.path() / names[shard], format_safetensors_header(header) + data);
    }
    test::write_text(source_.path() / "model.safetensors.index.json", index + "}}");
    const HttpServer server([&](const HttpRequest& r) {
        return hub(r, "/openai-community/gpt2/resolve/main/", source_.path());
    });
    const fs::path path = get("gpt2", server.url());
    EXPECT_EQ(path, home_.path() / "gpt-gpt2");
    EXPECT_EQ(names_in(path), names_in(source_.path()));
}

TEST_F(GetModel, WhatIsBrokenOffHasNoNameAndGoesOn) {
    bool broken = true;
    const HttpServer server([&](const HttpRequest& r) {
        HttpResponse response = hub(r, kWhisper, whisper_);
        if (broken && r.path.starts_with("/stored/")) response.cut = 1'000'000;
        return response;
    });
    EXPECT_NE(fails("tiny", server.url()).find("gave up"), std::string::npos);
    EXPECT_EQ(names_in(home_.path()), std::vector<std::string>{".whisper-tiny.part"});
    broken = false;
    get("tiny", server.url());
    EXPECT_EQ(names_in(home_.path() / "whisper-tiny"), names_in(whisper_));
    EXPECT_EQ(server.requests().back().range, "bytes=2000000-");
    // Small files were not fetched again either, only asked for.
    int configs = 0;
    for (const HttpRequest& r : server.requests())
        configs += r.method == "GET" && r.path == kWhisper + "config.json";
    EXPECT_EQ(configs, 1);
}

// What a server without hashes left in the part folder: whole files with other content under the
// very tags of the official server, and a file that the official server does not have.
TEST_F(GetModel, WhatAnotherServerLeftIsNotInstalled) {
    const fs::path part = home_.path() / ".whisper-tiny.part";
    fs::create_directories(part);
    const HttpServer first([&](const HttpRequest& r) {
        const std::string name = fs::path(r.path).filename();
        if (name == "tokenizer_config.json") return in_parts(r, "{}");
        std::string body = test::read_text(whisper_ / name);
        body[body.size() / 2] ^= 1;
        HttpResponse response = in_parts(r, body);
        const bool weights = name == "model.safetensors";
        response.headers["ETag"] =
            "\"" + (weights ? sha256_of(whisper_ / name) : git_blob_of(whisper_ / name)) + "\"";
        return response;
    });
    ASSERT_FALSE(fs::exists(whisper_ / "tokenizer_config.json"));
    Downloader downloader({30, 2, std::chrono::milliseconds(1)},
                          [](const std::string&, uint64_t, uint64_t) {});
    for (const char* name : {"config.json", "model.safetensors", "tokenizer_config.json"})
        ASSERT_TRUE(downloader.fetch(first.url() + kWhisper + name, part, name));
    EXPECT_EQ(downloader.unchecked().size(), 3u);
    const HttpServer official([&](const HttpRequest& r) { return hub(r, kWhisper, whisper_); });
    const fs::path path = get("tiny", official.url());
    EXPECT_EQ(names_in(path), names_in(whisper_));
    for (const std::string& name : names_in(path))
        EXPECT_EQ(test::read_text(path / name), test::read_text(whisper_ / name)) << name;
}

// Without hashes a wrong file shows when the model is opened.
TEST_F(GetModel, AnUncheckedFileOfAModelThatDoesNotOpenIsFetchedAgain) {
    bool mended = false;
    const HttpServer server([&](const HttpRequest& r) {
        HttpResponse response = hub(r, kWhisper, whisper_);
        if (response.status == 404) return response;
        const std::string name = fs::path(r.path).filename();
        std::string body = test::read_text(whisper_ / name);
        if (name == "config.json" && !mended) body[0] = '[';
        response = in_parts(r, body);
        response.headers["ETag"] = "\"v1\"";
        return response;
    });
    EXPECT_NE(fails("tiny", server.url()).find("config.json"), std::string::npos);
    mended = true;
    EXPECT_EQ(names_in(get("tiny", server.url())), names_in(whisper_));
}

TEST_F(GetModel, AModelThatDoesNotOpenHasNoName) {
    fs::copy(whisper_, source_.path(), fs::copy_options::recursive);
    const std::string weights = test::read_text(whisper_ / "model.safetensors");
    test::write_text(source_.path() / "model.safetensors", weights.substr(0, weights.size() - 2));
    const HttpServer server([&](const HttpRequest& r) { return hub(r, kWhisper, source_.path()); });
    EXPECT_NE(fails("tiny", server.url()).find("truncated"), std::string::npos);
    EXPECT_FALSE(fs::exists(home_.path() / "whisper-tiny"));
}

TEST_F(GetModel, AnotherKindOfModelIsRefused) {
    const HttpServer server([&](const HttpRequest& r) { return hub(r, kWhisper, gpt_); });
    EXPECT_NE(fails("tiny", server.url()).find("wrong kind of model (got gpt, expected whisper)"),
              std::string::npos);
    EXPECT_FALSE(fs::exists(home_.path() / "whisper-tiny"));
}

TEST_F(GetModel, ADiskThatIsTooSmallIsKnownBeforeTheFirstByte) {
    const HttpServer server([&](const HttpRequest& r) {
        HttpResponse response = hub(r, kWhisper, whisper_);
        if (!response.headers["X-Linked-Size"].empty())
            response.headers["X-Linked-Size"] = "4000000000000000000";
        return response;
    });
    EXPECT_NE(fails("tiny", server.url()).find("the disk has room for"), std::string::npos);
    for (const HttpRequest& r : server.requests())
        EXPECT_TRUE(r.method == "HEAD" || r.path.starts_with("/api/")) << r.path;
    EXPECT_TRUE(names_in(home_.path()).empty());
}

TEST_F(GetModel, AMirrorThatLacksItIsNamed) {
    const HttpServer server([](const HttpRequest&) { return HttpResponse{404}; });
    const std::string url = server.url() + kWhisper + "config.json";
    EXPECT_EQ(fails("tiny", server.url()),
              url + ": the server does not have this file (HTTP status 404)");
    EXPECT_TRUE(names_in(home_.path()).empty());
}

TEST_F(GetModel, NamesThatAreNotPublished) {
    EXPECT_THROW(wanted_model("huge"), UsageError);
    EXPECT_THROW(wanted_model("gpt-tiny"), UsageError);
    EXPECT_EQ(wanted_model("turbo").from.repository, "openai/whisper-large-v3-turbo");
    EXPECT_EQ(wanted_model("openai/whisper-tiny").installed, "whisper-tiny");
    EXPECT_NE(fails("tiny", "ftp://x").find("--from: not a URL"), std::string::npos);
}

}  // namespace
}  // namespace hark::models
