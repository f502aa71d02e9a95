// Answers of a server that are refused, tried again or given up.
#include "hub/download_fixture.h"
#include "support/expect.h"

namespace hark::models {
namespace {

TEST_F(Download, AnotherHashThanPromisedRemovesWhatHasCome) {
    const std::string hash = sha256(some_bytes(300'000, 5));
    const HttpServer server([&](const HttpRequest& r) {
        return r.path == "/file" ? linked(content_, hash) : in_parts(r, content_);
    });
    const std::string message = fails(server);
    test::expect_contains(message,
                          "wrong SHA-256 (got " + sha256(content_) + ", expected " + hash + ")");
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
    test::expect_contains(fails(server), "expected ce013625");
}

TEST_F(Download, MoreThanPromisedIsRefused) {
    const HttpServer server([&](const HttpRequest& r) {
        HttpResponse response = tagged({.body = content_});
        if (r.method == "HEAD") response.headers["Content-Length"] = "1000";
        return response;
    });
    test::expect_contains(fails(server), "got more than the 1000 bytes");
    EXPECT_FALSE(has("file"));
}

TEST_F(Download, LessThanPromisedIsTriedAgain) {
    const HttpServer server([&](const HttpRequest& r) {
        HttpResponse response = tagged({.body = content_});
        if (r.method == "HEAD") response.headers["Content-Length"] = "400000";
        return response;
    });
    test::expect_contains(fails(server), "got 300000 bytes, expected 400000");
    EXPECT_FALSE(has("file"));
}

TEST_F(Download, MoreThanTheDiskHoldsIsRefusedBeforeItComes) {
    const HttpServer server([&](const HttpRequest&) {
        HttpResponse response = tagged({});
        response.headers["Content-Length"] = "4000000000000000000";
        return response;
    });
    test::expect_contains(fails(server),
                          "4000000000000000000 bytes are needed, the disk has room for ");
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
        test::expect_contains(fails(server),
                              "the server refused (HTTP status " + std::to_string(status));
        EXPECT_EQ(server.requests().size(), 1u);
    }
}

TEST_F(Download, RedirectsHaveAnEnd) {
    const HttpServer server([&](const HttpRequest&) {
        HttpResponse response{302};
        response.headers["Location"] = "/file";
        return response;
    });
    test::expect_contains(fails(server), "more than 10 redirects");
}

TEST_F(Download, NoSizeIsRefused) {
    const HttpServer server([&](const HttpRequest&) {
        HttpResponse response;
        response.headers["Content-Length"] = "";
        return response;
    });
    test::expect_contains(fails(server), "the server stated no size (got Content-Length '')");
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
        test::expect_contains(error.what(), url + "/file: ");
        test::expect_contains(error.what(), "onnect");
    }
}

TEST_F(Download, AServerThatFallsSilentIsLeft) {
    const HttpServer server([&](const HttpRequest& r) {
        HttpResponse response = tagged(in_parts(r, content_));
        // The connection stays open after the cut, as the length promises more.
        if (r.method == "GET") std::this_thread::sleep_for(std::chrono::milliseconds(3500));
        return response;
    });
    Downloader downloader({1, 1, std::chrono::milliseconds(1)},
                          [](const std::string&, uint64_t, uint64_t) {});
    try {
        downloader.fetch(server.url() + "/file", directory_.path(), "file");
        FAIL() << "expected an Error";
    } catch (const Error& error) {
        test::expect_contains(error.what(), "gave up after 1 attempt");
    }
}

TEST_F(Download, OtherProtocolsAreRefused) {
    const HttpServer server([&](const HttpRequest&) {
        HttpResponse response{302};
        response.headers["Location"] = "file:///etc/passwd";
        return response;
    });
    test::expect_contains(fails(server), "rotocol");
    EXPECT_FALSE(has("file"));
}

}  // namespace
}  // namespace hark::models
