// hark-serve's page and its files, as a browser gets them. tests/page.sh has what they do.
#include <csignal>
#include <regex>

#include "core/error.h"
#include "tools/hark_serve.h"

using hark::concat;
using namespace hark::test;

namespace {

Served& page_server() {
    static Served server(kServedDemo);
    return server;
}

// The files that the page names.
std::vector<std::string> named_files(const std::string& page) {
    static const std::regex kName("(?:src|href)=\"(page/[^\"]+)\"");
    std::vector<std::string> names;
    for (std::sregex_iterator at(page.begin(), page.end(), kName), end; at != end; ++at)
        names.push_back("/" + (*at)[1].str());
    return names;
}

std::string type_of_file(const std::string& path) {
    return path.ends_with(".css")  ? "text/css; charset=utf-8"
           : path.ends_with(".js") ? "text/javascript; charset=utf-8"
                                   : "text/html; charset=utf-8";
}

}  // namespace

TEST(HarkServePage, FilesHaveTheirTypesAndHeaders) {
    std::vector<std::string> paths = named_files(page_server().get("/").body);
    EXPECT_GE(paths.size(), 13u);
    for (const char* const more : {"/", "/page/recorder_worklet.js", "/page/page.js?a=b"})
        paths.emplace_back(more);
    for (const std::string& path : paths) {
        SCOPED_TRACE(path);
        const TestReply reply = page_server().get(path);
        ASSERT_EQ(reply.status, 200);
        EXPECT_TRUE(reply.is_whole);
        EXPECT_GT(reply.body.size(), 100u);
        EXPECT_EQ(reply.headers.at("content-type"), type_of_file(path.substr(0, path.find('?'))));
        EXPECT_EQ(reply.headers.at("x-content-type-options"), "nosniff");
        EXPECT_EQ(reply.headers.at("cache-control"), "no-cache");
        EXPECT_EQ(reply.headers.at("referrer-policy"), "no-referrer");
        const std::string policy = reply.headers.at("content-security-policy");
        for (const char* const part :
             {"default-src 'none'; ", "script-src 'self'; ", "connect-src 'self'; ",
              "base-uri 'none'; ", "form-action 'none'; ", "frame-ancestors 'none'"})
            expect_contains(policy, part);
        EXPECT_EQ(policy.find("unsafe"), policy.npos);
        EXPECT_EQ(reply.body.find("{{"), reply.body.npos);
    }
}

TEST(HarkServePage, HeadIsGetWithoutItsBody) {
    for (const char* const path : {"/", "/page/page.js", "/v1/models", "/health", "/page/other"}) {
        SCOPED_TRACE(path);
        const TestReply whole = page_server().get(path);
        TestClient client(page_server().address());
        client.send(concat("HEAD ", path, " HTTP/1.1\r\nHost: localhost\r\n\r\n",
                           "GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"));
        std::string text;
        for (std::string more; !(more = client.read_some()).empty();) text += more;
        const size_t end = text.find("\r\n\r\n");
        ASSERT_NE(end, text.npos) << text;
        expect_contains(text.substr(0, end + 2),
                        concat("Content-Length: ", whole.body.size(), "\r\n"));
        EXPECT_TRUE(text.starts_with(concat("HTTP/1.1 ", whole.status, " "))) << text;
        // The answer to the next request follows at once.
        EXPECT_TRUE(text.substr(end + 4).starts_with("HTTP/1.1 200 OK\r\n")) << text;
    }
    TestClient client(page_server().address());
    client.send("HEAD /v1/completions HTTP/1.1\r\nHost: localhost\r\n\r\n");
    expect_contains(client.read_some(), "405 Method Not Allowed");
}

TEST(HarkServePage, OtherPathsAndMethodsAreRefused) {
    expect_refused(page_server().get("/page/other.js"), 404, "no such file of the page");
    expect_refused(page_server().get("/index.html"), 404, "no such path");
    expect_refused(page_server().get("/page/../page.css"), 404, "no such file of the page");
    expect_refused(page_server().post("/", json::object()), 405, "takes GET");
    TestClient foreign(page_server().address());
    foreign.send("GET / HTTP/1.1\r\nHost: example.org\r\n\r\n");
    expect_refused(foreign.receive(), 403, "found 'example.org'");
}

TEST(HarkServePage, NeedsNoKeyButItsRequestsDo) {
    TemporaryDirectory directory;
    write_text(directory.path() / "keys", "sk-right\n");
    const Served server({"--model", kGptDemo, "--api-keys", (directory.path() / "keys").string()});
    EXPECT_EQ(server.get("/").status, 200);
    EXPECT_EQ(server.get("/page/page.js").status, 200);
    EXPECT_EQ(server.get("/v1/models").status, 401);
    EXPECT_EQ(server.get("/other").status, 401);
}

TEST(HarkServePage, ComesThroughASocketAndNotOnceTheServerEnds) {
    TemporaryDirectory directory;
    Served server({"--model", kGptDemo, "--socket", (directory.path() / "socket").string()});
    TestClient runs(server.address()), idle(server.address());
    EXPECT_EQ(idle.get("/").status, 200);
    json request = completion("He said", {{"stream", true}, {"max_tokens", 200}, {"n", 8}});
    runs.send(request_text("POST", "/v1/completions", request.dump(),
                           {"Content-Type: application/json"}));
    runs.read_some();
    server.tool().signal(SIGTERM);
    while (idle.get("/health").status == 200) continue;
    EXPECT_EQ(TestClient(server.address()).get("/").status, 503);
    while (!runs.read_some().empty()) continue;
    EXPECT_EQ(server.tool().wait(), 0);
}

TEST(HarkServePage, ModelsTellWhatTheyAnswer) {
    const auto models_of = [](std::vector<std::string> arguments) {
        const Served server(std::move(arguments));
        return json::parse(server.get("/v1/models").body)["data"];
    };
    const json text = models_of(kServedDemo)[0];
    EXPECT_EQ(text["endpoints"], json({"/v1/completions", "/v1/embeddings"}));
    EXPECT_EQ(text["max_model_len"], 512);
    EXPECT_FALSE(text.contains("languages"));
    TemporaryDirectory directory;
    write_text(directory.path() / "template", "{{ messages[0].content }}");
    const json both =
        models_of({"--model", "demo", "--chat-template", (directory.path() / "template").string()});
    ASSERT_EQ(both.size(), 1u);
    EXPECT_EQ(both[0]["endpoints"],
              json({"/v1/chat/completions", "/v1/completions", "/v1/embeddings",
                    "/v1/audio/transcriptions", "/v1/audio/translations", "/v1/audio/live"}));
    EXPECT_GT(both[0]["languages"].size(), 1u);
    EXPECT_EQ(both[0]["languages"].dump().find("<|"), std::string::npos);
}
