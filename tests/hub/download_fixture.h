// A file over HTTP from a server of the test's own.
#pragma once

#include <gtest/gtest.h>

#include "core/error.h"
#include "hub/digest.h"
#include "hub/download.h"
#include "support/http_server.h"
#include "support/process.h"

namespace hark::models {

using test::HttpRequest;
using test::HttpResponse;
using test::HttpServer;

inline constexpr int kAttempts = 3;

inline std::string some_bytes(size_t n, uint32_t state = 1) {
    std::string bytes(n, '\0');
    for (char& byte : bytes) byte = static_cast<char>((state = state * 1664525 + 1013904223) >> 24);
    return bytes;
}

class Download : public ::testing::Test {
  protected:
    bool fetch(const HttpServer& server, const std::string& path = "/file") {
        const RetryPolicy policy{2, kAttempts, std::chrono::milliseconds(1)};
        Downloader downloader(policy, [&](const std::string& name, uint64_t done, uint64_t all) {
            EXPECT_EQ(name, "file");
            EXPECT_LE(done, all);
        });
        return downloader.fetch(server.url() + path, directory_.path(), "file");
    }
    std::string fails(const HttpServer& server, const std::string& path = "/file") {
        try {
            fetch(server, path);
        } catch (const Error& error) {
            return error.what();
        }
        return "nothing was thrown";
    }
    std::string whole() const { return test::read_text(directory_.path() / "file"); }
    std::string part() const { return test::read_text(directory_.path() / "file.part"); }
    bool has(const std::string& name) const {
        return std::filesystem::exists(directory_.path() / name);
    }
    // With a server's name for its content, as most have.
    static HttpResponse tagged(HttpResponse response, const std::string& tag = "\"v1\"") {
        response.headers["ETag"] = tag;
        return response;
    }
    // As Hugging Face has a large file: elsewhere, and with its hash on the way there.
    static HttpResponse linked(const std::string& body, const std::string& sha256) {
        HttpResponse response{302};
        response.headers = {{"Location", "/elsewhere?signed"},
                            {"X-Linked-ETag", "\"" + sha256 + "\""},
                            {"X-Linked-Size", std::to_string(body.size())}};
        return response;
    }

    std::string sha256(const std::string& bytes) {
        test::write_text(directory_.path() / "hashed", bytes);
        return sha256_of(directory_.path() / "hashed");
    }

    test::TemporaryDirectory directory_;
    const std::string content_ = some_bytes(300'000);
};

}  // namespace hark::models
