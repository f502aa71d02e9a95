// A file over HTTP from a server that breaks off, lies, redirects or knows no parts.
#include "hub/download.h"

#include <gtest/gtest.h>

#include "hub/digest.h"
#include "support/http_server.h"
#include "support/process.h"

namespace hark::models {
namespace {

using test::HttpRequest;
using test::HttpResponse;
using test::HttpServer;

constexpr int kAttempts = 3;

std::string some_bytes(size_t n, uint32_t state = 1) {
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

void expect_part(const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' not in: " << text;
}

TEST_F(Download, AFileComesWholeAndTheSecondTimeNotAtAll) {
    const HttpServer server([&](const HttpRequest& r) { return tagged(in_parts(r, content_)); });
    EXPECT_TRUE(fetch(server));
    EXPECT_EQ(whole(), content_);
    EXPECT_FALSE(has("file.part"));
    EXPECT_TRUE(fetch(server));
    const std::vector<HttpRequest> expected = {
        {"HEAD", "/file", ""}, {"GET", "/file", ""}, {"HEAD", "/file", ""}};
    EXPECT_EQ(server.requests(), expected);
}

TEST_F(Download, AnEmptyFile) {
    const HttpServer server([&](const HttpRequest& r) { return tagged(in_parts(r, "")); });
    EXPECT_TRUE(fetch(server));
    EXPECT_TRUE(has("file"));
    EXPECT_EQ(whole(), "");
}

TEST_F(Download, AFileThatIsNotThereIsNoError) {
    const HttpServer server([](const HttpRequest&) { return HttpResponse{404}; });
    EXPECT_FALSE(fetch(server));
    EXPECT_FALSE(has("file"));
}

TEST_F(Download, ATransferThatBreaksOffGoesOnFromThere) {
    int gets = 0;
    const HttpServer server([&](const HttpRequest& r) {
        HttpResponse response = tagged(in_parts(r, content_));
        if (r.method == "GET" && ++gets < kAttempts) response.cut = 100'000;
        return response;
    });
    EXPECT_TRUE(fetch(server));
    EXPECT_EQ(whole(), content_);
    const std::vector<HttpRequest> expected = {{"HEAD", "/file", ""},
                                               {"GET", "/file", ""},
                                               {"GET", "/file", "bytes=100000-", "\"v1\""},
                                               {"GET", "/file", "bytes=200000-", "\"v1\""}};
    EXPECT_EQ(server.requests(), expected);
}

TEST_F(Download, AttemptsAreBoundedAndAnotherRunGoesOn) {
    bool mended = false;
    const HttpServer server([&](const HttpRequest& r) {
        HttpResponse response = tagged(in_parts(r, content_));
        if (!mended) response.cut = 10'000;
        return response;
    });
    const std::string message = fails(server);
    expect_part(message, "gave up after 3 attempts");
    expect_part(message, "/file");
    EXPECT_EQ(server.requests().size(), 1u + kAttempts);
    EXPECT_FALSE(has("file"));
    EXPECT_EQ(part(), content_.substr(0, 30'000));
    mended = true;
    EXPECT_TRUE(fetch(server));
    EXPECT_EQ(whole(), content_);
    EXPECT_EQ(server.requests().back(), (HttpRequest{"GET", "/file", "bytes=30000-", "\"v1\""}));
}

TEST_F(Download, AServerWithoutPartsIsAskedForAllOfIt) {
    int gets = 0;
    const HttpServer server([&](const HttpRequest& r) {
        HttpResponse response = tagged({.body = content_});
        if (r.method == "GET" && ++gets == 1) response.cut = 100'000;
        return response;
    });
    EXPECT_TRUE(fetch(server));
    EXPECT_EQ(whole(), content_);
    EXPECT_EQ(server.requests().back(), (HttpRequest{"GET", "/file", "bytes=100000-", "\"v1\""}));
}

TEST_F(Download, AFileThatHasChangedMeanwhileIsFetchedAnew) {
    test::write_text(directory_.path() / "file.part", some_bytes(1000, 9));
    test::write_text(directory_.path() / "file.version", "v0");
    const HttpServer server([&](const HttpRequest& r) { return tagged(in_parts(r, content_)); });
    EXPECT_TRUE(fetch(server));
    EXPECT_EQ(whole(), content_);
    EXPECT_EQ(server.requests().back(), (HttpRequest{"GET", "/file", ""}));
}

// As RFC 9110 has it: a part of the version that is asked for, else all of the present one.
HttpResponse if_range(const HttpRequest& request, const std::string& body,
                      const std::string& version) {
    const bool same = request.if_range.empty() || request.if_range == version;
    return same ? in_parts(request, body) : HttpResponse{.body = body};
}

TEST_F(Download, AFileThatChangesBetweenTwoAttemptsIsOneVersion) {
    for (const size_t size :
         {content_.size(), content_.size() - 70'000, content_.size() + 70'000}) {
        const std::string later = some_bytes(size, 7);
        std::filesystem::remove(directory_.path() / "file");
        int gets = 0;
        const HttpServer server([&](const HttpRequest& r) {
            if (r.method == "GET") ++gets;
            const bool first = gets == 0 || (gets == 1 && r.method == "GET");
            const std::string tag = first ? "\"v1\"" : "\"v2\"";
            HttpResponse response = tagged(if_range(r, first ? content_ : later, tag), tag);
            if (first) response.cut = 100'000;
            return response;
        });
        EXPECT_TRUE(fetch(server));
        EXPECT_EQ(whole(), later);
        EXPECT_EQ(server.requests()[2], (HttpRequest{"GET", "/file", "bytes=100000-", "\"v1\""}));
        EXPECT_EQ(server.requests().back(), (HttpRequest{"GET", "/file", ""}));
    }
}

// One of a mirror's servers still tells of the version before.
TEST_F(Download, TwoVersionsAtOnceDoNotMeet) {
    const std::string later = some_bytes(content_.size(), 7);
    int gets = 0;
    const HttpServer server([&](const HttpRequest& r) {
        if (r.method == "GET") ++gets;
        const bool old = r.method == "HEAD" ? gets == 0 : gets == 2;
        const std::string tag = old ? "\"v1\"" : "\"v2\"";
        return tagged(if_range(r, old ? content_ : later, tag), tag);
    });
    EXPECT_TRUE(fetch(server));
    EXPECT_EQ(whole(), later);
}

TEST_F(Download, WithoutAStrongETagTheDateTellsTheVersion) {
    const std::string date = "Wed, 21 Oct 2015 07:28:00 GMT";
    for (const std::string tag : {"", "W/\"v1\""}) {
        std::filesystem::remove(directory_.path() / "file");
        int gets = 0;
        const HttpServer server([&](const HttpRequest& r) {
            HttpResponse response = tagged(if_range(r, content_, date), tag);
            response.headers["Last-Modified"] = date;
            if (r.method == "GET" && ++gets == 1) response.cut = 100'000;
            return response;
        });
        EXPECT_TRUE(fetch(server));
        EXPECT_EQ(whole(), content_);
        EXPECT_EQ(server.requests().back(), (HttpRequest{"GET", "/file", "bytes=100000-", date}));
        EXPECT_TRUE(fetch(server));  // is there
        EXPECT_EQ(server.requests().back().method, "HEAD");
    }
}

TEST_F(Download, WithNeitherItIsFetchedAnewEachTime) {
    for (const std::string tag : {"", "W/\"v1\""}) {
        int gets = 0;
        const HttpServer server([&](const HttpRequest& r) {
            HttpResponse response = tagged(in_parts(r, content_), tag);
            if (r.method == "GET" && ++gets == 1) response.cut = 100'000;
            return response;
        });
        EXPECT_TRUE(fetch(server));
        EXPECT_EQ(whole(), content_);
        EXPECT_EQ(server.requests().back(), (HttpRequest{"GET", "/file", ""}));
        std::filesystem::remove(directory_.path() / "file");
        std::filesystem::remove(directory_.path() / "file.version");
    }
}

// Both servers give the file the same tag.
TEST_F(Download, APartOfAnotherServerIsNotContinued) {
    const std::string poison = some_bytes(content_.size(), 7);
    const HttpServer first([&](const HttpRequest& r) {
        HttpResponse response = tagged(in_parts(r, poison));
        response.cut = 10'000;
        return response;
    });
    expect_part(fails(first), "gave up after");
    EXPECT_EQ(part(), poison.substr(0, 30'000));
    const HttpServer second([&](const HttpRequest& r) { return tagged(in_parts(r, content_)); });
    EXPECT_TRUE(fetch(second));
    EXPECT_EQ(whole(), content_);
    EXPECT_EQ(second.requests().back(), (HttpRequest{"GET", "/file", ""}));
}

TEST_F(Download, AWholeFileOfAnotherServerIsFetchedAgain) {
    const std::string poison = some_bytes(content_.size(), 7);
    const HttpServer first([&](const HttpRequest& r) { return tagged(in_parts(r, poison)); });
    EXPECT_TRUE(fetch(first));
    const HttpServer second([&](const HttpRequest& r) { return tagged(in_parts(r, content_)); });
    EXPECT_TRUE(fetch(second));
    EXPECT_EQ(whole(), content_);
}

TEST_F(Download, AWholeFileIsCheckedAgainstTheHashOfNow) {
    const std::string hash = sha256(content_);
    const HttpServer server([&](const HttpRequest& r) {
        return r.path == "/file" ? linked(content_, hash) : in_parts(r, content_);
    });
    EXPECT_TRUE(fetch(server));
    test::write_text(directory_.path() / "file", some_bytes(content_.size(), 7));
    EXPECT_TRUE(fetch(server));
    EXPECT_EQ(whole(), content_);
}

TEST_F(Download, FilesWithoutAHashAreNamed) {
    const std::string hash = sha256(content_);
    const HttpServer server([&](const HttpRequest& r) {
        if (r.path == "/hashed") return linked(content_, hash);
        return tagged(in_parts(r, content_));
    });
    Downloader downloader({}, [](const std::string&, uint64_t, uint64_t) {});
    EXPECT_TRUE(downloader.fetch(server.url() + "/hashed", directory_.path(), "a"));
    EXPECT_TRUE(downloader.unchecked().empty());
    EXPECT_TRUE(downloader.fetch(server.url() + "/plain", directory_.path(), "b"));
    EXPECT_EQ(downloader.unchecked(), std::vector<std::string>{"b"});
}

TEST_F(Download, WithoutAnETagNothingIsKept) {
    test::write_text(directory_.path() / "file.part", some_bytes(1000, 9));
    test::write_text(directory_.path() / "file.version", "");
    const HttpServer server([&](const HttpRequest& r) { return in_parts(r, content_); });
    EXPECT_TRUE(fetch(server));
    EXPECT_EQ(whole(), content_);
    EXPECT_EQ(server.requests().back(), (HttpRequest{"GET", "/file", ""}));
}

TEST_F(Download, APartThatBeginsElsewhereIsRefused) {
    const HttpServer server([&](const HttpRequest& r) {
        HttpResponse response = tagged(in_parts(r, content_));
        response.headers["Content-Range"] = "bytes 999-299999/300000";
        return response;
    });
    test::write_text(directory_.path() / "file.part", content_.substr(0, 1000));
    test::write_text(directory_.path() / "file.version", server.url() + "/file\nv1\n");
    expect_part(fails(server), "wrong part of the file (got Content-Range 'bytes 999-");
}

TEST_F(Download, ARedirectIsFollowedAndItsHashIsChecked) {
    const std::string hash = sha256(content_);
    const HttpServer server([&](const HttpRequest& r) {
        return r.path == "/file" ? linked(content_, hash) : in_parts(r, content_);
    });
    EXPECT_TRUE(fetch(server));
    EXPECT_EQ(whole(), content_);
    // The signed address is asked for nothing but the file.
    const std::vector<HttpRequest> expected = {
        {"HEAD", "/file", ""}, {"GET", "/file", ""}, {"GET", "/elsewhere?signed", ""}};
    EXPECT_EQ(server.requests(), expected);
}

TEST_F(Download, AnotherHashThanPromisedRemovesWhatHasCome) {
    const std::string hash = sha256(some_bytes(300'000, 5));
    const HttpServer server([&](const HttpRequest& r) {
        return r.path == "/file" ? linked(content_, hash) : in_parts(r, content_);
    });
    const std::string message = fails(server);
    expect_part(message, "wrong SHA-256 (got " + sha256(content_) + ", expected " + hash + ")");
    EXPECT_FALSE(has("file"));
    EXPECT_FALSE(has("file.part"));
}

TEST_F(Download, ASmallFileOfHuggingFaceIsCheckedByGitsName) {
    std::string body = "hello\n";
    const HttpServer server([&](const HttpRequest& r) {
        HttpResponse response =
            tagged(in_parts(r, body), "W/\"ce013625030ba8dba906f756967f9e9ca394464a\"");
        response.headers["X-Repo-Commit"] = "0123";
        return response;
    });
    EXPECT_TRUE(fetch(server));
    EXPECT_EQ(whole(), body);
    std::filesystem::remove(directory_.path() / "file");
    body = "hellO\n";
    expect_part(fails(server), "expected ce013625");
}

TEST_F(Download, MoreThanPromisedIsRefused) {
    const HttpServer server([&](const HttpRequest& r) {
        HttpResponse response = tagged({.body = content_});
        if (r.method == "HEAD") response.headers["Content-Length"] = "1000";
        return response;
    });
    expect_part(fails(server), "got more than the 1000 bytes");
    EXPECT_FALSE(has("file"));
}

TEST_F(Download, LessThanPromisedIsTriedAgain) {
    const HttpServer server([&](const HttpRequest& r) {
        HttpResponse response = tagged({.body = content_});
        if (r.method == "HEAD") response.headers["Content-Length"] = "400000";
        return response;
    });
    expect_part(fails(server), "got 300000 bytes, expected 400000");
    EXPECT_FALSE(has("file"));
}

TEST_F(Download, MoreThanTheDiskHoldsIsRefusedBeforeItComes) {
    const HttpServer server([&](const HttpRequest&) {
        HttpResponse response = tagged({});
        response.headers["Content-Length"] = "4000000000000000000";
        return response;
    });
    expect_part(fails(server), "4000000000000000000 bytes are needed, the disk has room for ");
    EXPECT_EQ(server.requests().size(), 1u);
}

TEST_F(Download, AServerThatFailsForAWhile) {
    int requests = 0;
    const HttpServer server([&](const HttpRequest& r) {
        if (++requests == 3) return HttpResponse{503};
        return tagged(in_parts(r, content_));
    });
    const RetryPolicy policy{2, kAttempts, std::chrono::milliseconds(1)};
    Downloader downloader(policy, [](const std::string&, uint64_t, uint64_t) {});
    EXPECT_TRUE(downloader.fetch(server.url() + "/a", directory_.path(), "a"));
    EXPECT_TRUE(downloader.fetch(server.url() + "/file", directory_.path(), "file"));
    EXPECT_EQ(whole(), content_);
}

TEST_F(Download, OtherAnswersAreNamed) {
    for (const int status : {401, 403, 410, 500}) {
        const HttpServer server([&](const HttpRequest&) { return HttpResponse{status}; });
        expect_part(fails(server), "the server refused (HTTP status " + std::to_string(status));
        EXPECT_EQ(server.requests().size(), 1u);
    }
}

TEST_F(Download, RedirectsHaveAnEnd) {
    const HttpServer server([&](const HttpRequest&) {
        HttpResponse response{302};
        response.headers["Location"] = "/file";
        return response;
    });
    expect_part(fails(server), "more than 10 redirects");
}

TEST_F(Download, NoSizeIsRefused) {
    const HttpServer server([&](const HttpRequest&) {
        HttpResponse response;
        response.headers["Content-Length"] = "";
        return response;
    });
    expect_part(fails(server), "the server stated no size (got Content-Length '')");
}

TEST_F(Download, NobodyAtHomeIsToldAtOnce) {
    std::string url;
    {
        const HttpServer server([](const HttpRequest&) { return HttpResponse{}; });
        url = server.url();
    }
    const RetryPolicy policy{2, kAttempts, std::chrono::milliseconds(60'000)};
    Downloader downloader(policy, [](const std::string&, uint64_t, uint64_t) {});
    try {
        downloader.fetch(url + "/file", directory_.path(), "file");
        FAIL() << "expected an Error";
    } catch (const Error& error) {
        expect_part(error.what(), url + "/file: ");
        expect_part(error.what(), "onnect");
    }
}

TEST_F(Download, AServerThatFallsSilentIsLeft) {
    const HttpServer server([&](const HttpRequest& r) {
        HttpResponse response = tagged(in_parts(r, content_));
        // The connection stays open behind what is cut, as the length promises more.
        if (r.method == "GET") std::this_thread::sleep_for(std::chrono::milliseconds(3500));
        return response;
    });
    Downloader downloader({1, 1, std::chrono::milliseconds(1)},
                          [](const std::string&, uint64_t, uint64_t) {});
    try {
        downloader.fetch(server.url() + "/file", directory_.path(), "file");
        FAIL() << "expected an Error";
    } catch (const Error& error) {
        expect_part(error.what(), "gave up after 1 attempt");
    }
}

TEST_F(Download, OtherProtocolsAreRefused) {
    const HttpServer server([&](const HttpRequest&) {
        HttpResponse response{302};
        response.headers["Location"] = "file:///etc/passwd";
        return response;
    });
    expect_part(fails(server), "rotocol");
    EXPECT_FALSE(has("file"));
}

}  // namespace
}  // namespace hark::models
