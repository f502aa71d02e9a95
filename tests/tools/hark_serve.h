// hark-serve with the demonstration model and a tiny chat model, as its tests run it.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "support/background.h"
#include "support/family_folder.h"
#include "support/http_client.h"
#include "tools/gpt_generate.h"

namespace hark::test {

// A server that runs.
class Served {
  public:
    explicit Served(std::vector<std::string> more = {})
        : tool_("hark-serve", arguments(std::move(more)), "listening on ") {}

    // The same of any command of the shell that starts one.
    struct ByShell {};
    Served(ByShell, const std::string& command)
        : tool_({"/bin/sh", "-c", "exec " + command}, "listening on ") {}

    const std::string& address() const { return tool_.said(); }
    BackgroundTool& tool() { return tool_; }
    const BackgroundTool& tool() const { return tool_; }
    TestReply post(const std::string& path, const json& body) const {
        return TestClient(address()).post(path, body.dump());
    }
    TestReply get(const std::string& path) const { return TestClient(address()).get(path); }
    // The value of a line of /metrics.
    double metric(const std::string& name) const {
        const std::string text = get("/metrics").body, line = "\n" + name;
        const size_t at = text.find(line);
        EXPECT_NE(at, std::string::npos) << name;
        return at == text.npos ? -1 : std::atof(text.c_str() + text.find(' ', at + line.size()));
    }

  private:
    static std::vector<std::string> arguments(std::vector<std::string> more) {
        std::vector<std::string> all = {"--port", "0", "--threads", "1"};
        all.insert(all.end(), more.begin(), more.end());
        return all;
    }

    BackgroundTool tool_;
};

inline const std::string kSpeechDemo = (source_dir() / "models/whisper-demo").string();
inline const std::vector<std::string> kServedDemo = {"--model", kGptDemo};

// A greedy completion of the demonstration model.
inline json completion(const std::string& prompt, const json& more = json::object()) {
    json request = {
        {"model", "gpt-demo"}, {"prompt", prompt}, {"temperature", 0}, {"max_tokens", 20}};
    request.update(more);
    return request;
}

// Waits until the metric has the value; the test fails if it does not come to that.
inline void await_metric(const Served& server, const std::string& name, double value) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    double found = 0;
    while ((found = server.metric(name)) != value && std::chrono::steady_clock::now() < end)
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    EXPECT_EQ(found, value) << name;
}

// A form with a file and fields, as curl sends it.
inline std::string form_request(const std::string& path, const std::string& file,
                                std::map<std::string, std::string> fields = {}) {
    fields.insert({"model", "whisper-demo"});
    std::string body;
    for (const auto& [name, value] : fields)
        body +=
            "--b\r\nContent-Disposition: form-data; name=\"" + name + "\"\r\n\r\n" + value + "\r\n";
    body += "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\n" + file +
            "\r\n--b--\r\n";
    return request_text("POST", path, body, {"Content-Type: multipart/form-data; boundary=b"});
}

// The texts of a streamed answer's choices, put together from its events.
inline std::map<int, std::string> streamed_texts(const TestReply& reply, bool is_chat) {
    EXPECT_EQ(reply.status, 200) << reply.body;
    EXPECT_TRUE(reply.is_whole);
    EXPECT_EQ(reply.headers.at("content-type"), "text/event-stream");
    std::map<int, std::string> texts;
    std::vector<std::string> events = events_of(reply.body);
    EXPECT_FALSE(events.empty());
    EXPECT_EQ(events.back(), "[DONE]");
    events.pop_back();
    for (const std::string& event : events) {
        const json parsed = json::parse(event);
        for (const json& choice : parsed["choices"]) {
            const json text = is_chat ? choice["delta"].value("content", json("")) : choice["text"];
            texts[choice["index"].get<int>()] += text.get<std::string>();
        }
    }
    return texts;
}

inline std::string error_message(const TestReply& reply) {
    return json::parse(reply.body)["error"]["message"].get<std::string>();
}

inline void expect_refused(const TestReply& reply, int status, const std::string& message) {
    EXPECT_EQ(reply.status, status) << reply.body;
    if (reply.status == status) expect_contains(error_message(reply), message);
}

}  // namespace hark::test
