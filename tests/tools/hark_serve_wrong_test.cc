// hark-serve with clients that are wrong, leave, or are too many, and its end.
#include <csignal>

#include "tools/hark_serve.h"

using namespace hark::test;

namespace {

const std::string kModel = "{model_name=\"gpt-demo\"}";

void await_count(const Served& server, const std::string& name, double value) {
    await_metric(server, name + kModel, value);
}

// A completion that takes long, as an event stream.
std::string long_request(const json& more = json::object()) {
    json request = completion("He said", {{"stream", true}, {"max_tokens", 200}, {"n", 64}});
    request.update(more);
    return request_text("POST", "/v1/completions", request.dump(),
                        {"Content-Type: application/json"});
}

}  // namespace

TEST(HarkServeWrong, RequestsAreRefusedWithOpenAisErrors) {
    const Served server(kServedDemo);
    const std::string path = "/v1/completions";
    const TestReply reply = TestClient(server.address()).post(path, "{\"model\"");
    expect_refused(reply, 400, "is not JSON");
    EXPECT_EQ(json::parse(reply.body)["error"]["type"], "invalid_request_error");
    expect_refused(server.post(path, completion("a", {{"temperature", "b"}})), 400, "temperature");
    expect_refused(server.post(path, completion("a", {{"frobnicate", 1}})), 400, "frobnicate");
    const TestReply unknown = server.post(path, completion("a", {{"model", "other"}}));
    expect_refused(unknown, 404, "no language model 'other'");
    EXPECT_EQ(json::parse(unknown.body)["error"]["code"], "model_not_found");
    expect_refused(server.post("/v2/completions", completion("a")), 404, "no such path");
    const TestReply method = server.get(path);
    expect_refused(method, 405, "takes POST");
    EXPECT_EQ(method.headers.at("allow"), "POST");
    const TestReply type = TestClient(server.address()).ask("POST", path, "{}", {});
    expect_refused(type, 415, "application/json");
    expect_refused(server.post(path, completion("")), 400, "no tokens");
    const TestReply length = server.post(path, completion("a", {{"max_tokens", 100000}}));
    expect_refused(length, 400, "the model's context has");
    EXPECT_EQ(json::parse(length.body)["error"]["code"], "context_length_exceeded");
    EXPECT_EQ(json::parse(length.body)["error"]["param"], "prompt");
    expect_refused(server.post(path, completion("a", {{"logit_bias", {{"99999999", 1}}}})), 400,
                   "logit bias");
    expect_refused(server.post(path, {{"model", "gpt-demo"}, {"prompt", {99999999}}}), 400,
                   "no token");
    expect_refused(
        server.post("/v1/chat/completions",
                    {{"model", "gpt-demo"}, {"messages", {{{"role", "user"}, {"content", "a"}}}}}),
        400, "no chat template");
    // A page whose name leads to this machine.
    TestClient page(server.address());
    page.send("GET /v1/models HTTP/1.1\r\nHost: example.org\r\n\r\n");
    expect_refused(page.receive(), 403, "found 'example.org'");
    // A form of another page needs no permission of the browser's; JSON does, so a program may ask.
    for (const std::string origin : {"http://example.org", "null", "http://127.0.0.1:1"})
        expect_refused(
            TestClient(server.address())
                .ask("POST", "/v1/audio/transcriptions", "",
                     {"Content-Type: multipart/form-data; boundary=b", "Origin: " + origin}),
            403, "Origin: expected that of the server's own page, found '" + origin);
    for (const std::string origin : {"http://127.0.0.1", "app://obsidian.md", "tauri://localhost"})
        EXPECT_EQ(TestClient(server.address())
                      .ask("POST", path, completion("a").dump(),
                           {"Content-Type: application/json", "Origin: " + origin})
                      .status,
                  200)
            << origin;
    TestClient client(server.address());
    client.send("nonsense\r\n\r\n");
    EXPECT_EQ(client.receive().status, 400);
    TestClient head(server.address());
    head.send("GET /health HTTP/1.1\r\nA: " + std::string(100000, 'b'));
    EXPECT_EQ(head.receive().status, 431);
    EXPECT_EQ(server.get("/health").status, 200);
}

TEST(HarkServeWrong, BodiesHaveALimit) {
    const Served server({"--model", kGptDemo, "--max-request-mb", "1"});
    const std::string large = completion(std::string(2 << 20, 'a')).dump();
    expect_refused(TestClient(server.address()).post("/v1/completions", large), 413, "too large");
    // In chunks the size is not known before.
    TestClient client(server.address());
    client.send(
        "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        "Transfer-Encoding: chunked\r\n\r\n200000\r\n");
    client.send(std::string(0x200000, ' ') + "\r\n");
    EXPECT_EQ(client.receive().status, 413);
}

TEST(HarkServeWrong, KeysAreNeeded) {
    const TemporaryDirectory directory;
    write_text(directory.path() / "keys", "sk-right\n");
    const Served server({"--model", kGptDemo, "--api-keys", (directory.path() / "keys").string()});
    const std::string body = completion("a").dump(), path = "/v1/completions";
    const auto status_with = [&](const std::string& header) {
        return TestClient(server.address())
            .ask("POST", path, body, {"Content-Type: application/json", header})
            .status;
    };
    EXPECT_EQ(status_with("Authorization: Bearer sk-right"), 200);
    EXPECT_EQ(status_with("Authorization: Bearer sk-wrong"), 401);
    EXPECT_EQ(status_with("X: y"), 401);
    EXPECT_EQ(server.get("/v1/models").status, 401);
    EXPECT_EQ(server.get("/metrics").status, 401);
    EXPECT_EQ(server.get("/health").status, 200);
}

TEST(HarkServeWrong, AClientThatLeavesEndsItsRequest) {
    const Served server(kServedDemo);
    {
        TestClient streams(server.address());
        streams.send(long_request());
        expect_contains(streams.read_some(), "200 OK");
        TestClient waits(server.address());
        waits.send(long_request({{"stream", false}}));
        await_count(server, "hark_num_requests_waiting", 2 * 64 - 16);
    }
    await_count(server, "hark_request_cancelled_total", 2);
    await_count(server, "hark_num_requests_running", 0);
    await_count(server, "hark_kv_cache_usage_perc", 0);
    EXPECT_EQ(server.post("/v1/completions", completion("a")).status, 200);
}

TEST(HarkServeWrong, TooManyAreToldToComeAgain) {
    const Served server({"--model", kGptDemo, "--max-sequences", "1", "--max-queue", "1"});
    TestClient runs(server.address()), waits(server.address());
    runs.send(long_request());
    expect_contains(runs.read_some(), "200 OK");
    waits.send(long_request());
    await_count(server, "hark_num_requests_waiting", 2 * 64 - 1);
    const TestReply reply = server.post("/v1/completions", completion("a"));
    expect_refused(reply, 429, "too many requests");
    EXPECT_EQ(reply.headers.at("retry-after"), "1");
    EXPECT_EQ(server.get("/health").status, 200);
}

TEST(HarkServeWrong, SlowClientsAreCutOff) {
    const Served server({"--model", kGptDemo, "--client-timeout", "0.3"});
    TestClient silent(server.address()), head(server.address()), body(server.address());
    head.send("GET /health HTTP/1.1\r\nA: ");
    body.send(
        "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        "Content-Length: 100\r\n\r\n{");
    EXPECT_EQ(silent.read_some(), "");
    EXPECT_EQ(head.receive().status, 0);
    EXPECT_EQ(body.receive().status, 0);
    EXPECT_EQ(server.get("/health").status, 200);
}

TEST(HarkServeWrong, StreamsThatWaitAreNotSilent) {
    const Served server({"--model", kGptDemo, "--max-sequences", "1", "--client-timeout", "0.2"});
    TestClient runs(server.address()), waits(server.address());
    runs.send(long_request());
    expect_contains(runs.read_some(), "200 OK");
    waits.send(long_request({{"n", 1}}));
    std::string text;
    for (std::string more; text.find(": pause\n\n") == text.npos; text += more)
        if ((more = waits.read_some()).empty()) break;
    expect_contains(text, "\r\n: pause\n\n\r\n");
    EXPECT_EQ(text.find("data: "), text.npos) << text;
}

TEST(HarkServeWrong, AnswersHaveATimeLimit) {
    const Served server({"--model", kGptDemo, "--answer-timeout", "0.5"});
    TestClient client(server.address());
    client.send(long_request({{"stream", false}, {"n", 128}}));
    EXPECT_EQ(client.receive().status, 504);
    await_count(server, "hark_num_requests_running", 0);
}

TEST(HarkServeWrong, SigtermFinishesWhatRuns) {
    Served server(kServedDemo);
    TestClient runs(server.address()), idle(server.address());
    EXPECT_EQ(idle.get("/health").status, 200);
    runs.send(long_request({{"n", 4}}));
    std::string text = runs.read_some();
    server.tool().signal(SIGTERM);
    while (idle.get("/health").status == 200) continue;
    TestClient late(server.address());
    EXPECT_EQ(late.post("/v1/completions", completion("a").dump()).status, 503);
    for (std::string more; !(more = runs.read_some()).empty();) text += more;
    expect_contains(text, "data: [DONE]\n\n");
    EXPECT_EQ(server.tool().wait(), 0);
    expect_contains(server.tool().err(), "listening on ");
    EXPECT_EQ(lines_of(server.tool().err()).size(), 1u) << server.tool().err();
}

TEST(HarkServeWrong, SigtermWaitsForAsLongAsItIsTold) {
    Served server({"--model", kGptDemo, "--drain-timeout", "0.2"});
    TestClient streams(server.address()), waits(server.address());
    streams.send(long_request());
    std::string text = streams.read_some();
    waits.send(long_request({{"stream", false}}));
    await_count(server, "hark_num_requests_waiting", 2 * 64 - 16);  // both have arrived
    server.tool().signal(SIGTERM);
    EXPECT_EQ(server.tool().wait(), 0);
    for (std::string more; !(more = streams.read_some()).empty();) text += more;
    EXPECT_EQ(text.find("[DONE]"), text.npos);
    EXPECT_EQ(waits.receive().status, 0);
    EXPECT_EQ(lines_of(server.tool().err()).size(), 1u) << server.tool().err();
}

TEST(HarkServeWrong, ASecondSigtermEndsAtOnce) {
    Served server(kServedDemo);
    TestClient runs(server.address());
    runs.send(long_request());
    runs.read_some();
    server.tool().signal(SIGTERM);
    while (TestClient(server.address()).get("/health").status == 200) continue;
    server.tool().signal(SIGTERM);
    EXPECT_EQ(server.tool().wait(), -SIGTERM);
}

TEST(HarkServeWrong, AUnixSocketIsTheUsersAlone) {
    const TemporaryDirectory directory;
    const std::string path = (directory.path() / "socket").string();
    const std::vector<std::string> arguments = {"--model", kGptDemo, "--socket", path};
    Served server(arguments);
    EXPECT_EQ(server.address(), "unix:" + path);
    EXPECT_EQ(server.get("/health").status, 200);
    EXPECT_EQ(std::filesystem::status(path).permissions(), std::filesystem::perms(0600));
    const ProcessResult second = run_tool("hark-serve", arguments);
    expect_fails(second, 1, "another program listens on it");
    server.tool().signal(SIGTERM);
    EXPECT_EQ(server.tool().wait(), 0);
    EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(HarkServeWrong, CommandLines) {
    expect_fails(run_tool("hark-serve", {"demo"}), 2, "--model demo");
    expect_fails(run_tool("hark-serve", {"--model", "xyzzy"}), 1, "no model 'xyzzy'");
    expect_fails(run_tool("hark-serve", {"--model", kGptDemo, "--model", kGptDemo}), 1,
                 "is served already");
    expect_fails(run_tool("hark-serve", {"--model", kGptDemo, "--api-keys", "/dev/null"}), 1,
                 "no key");
    const Served server(kServedDemo);
    const std::string port = server.address().substr(server.address().rfind(':') + 1);
    expect_fails(run_tool("hark-serve", {"--model", kGptDemo, "--port", port}), 1,
                 "cannot listen on 127.0.0.1:" + port);
}
