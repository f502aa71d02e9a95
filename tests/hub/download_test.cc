// A file over HTTP from a server that breaks off, knows no parts, redirects, or has another
// version.
#include "hub/download_fixture.h"
#include "support/expect.h"

namespace hark::models {
namespace {

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
    test::expect_contains(message, "gave up after 3 attempts");
    test::expect_contains(message, "/file");
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
    test::expect_contains(fails(first), "gave up after");
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
    test::expect_contains(fails(server), "wrong part of the file (got Content-Range 'bytes 999-");
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

}  // namespace
}  // namespace hark::models
