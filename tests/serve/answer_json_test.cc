// Answers in OpenAI's forms, and the small things around them.
#include "serve/openai/answer_json.h"

#include <gtest/gtest.h>

#include "serve/metrics.h"
#include "serve/openai/errors.h"
#include "serve/web/api_keys.h"
#include "serve/web/paths.h"
#include "support/error_of.h"
#include "support/expect.h"
#include "support/http_client.h"
#include "support/process.h"

namespace hark::serve {
namespace {

using nlohmann::ordered_json;

const AnswerHead kHead = {.id = "chatcmpl-1", .model = "m", .created = 5, .is_chat = true};

TEST(ServeAnswerJson, ChoicesHaveCallsAndReasoningApart) {
    const gpt::AnswerParts plain = {.text = "hi", .reasoning = "because"};
    EXPECT_EQ(choice_json(kHead, 1, plain, nullptr, "stop").dump(),
              R"({"index":1,"message":{"role":"assistant","content":"hi","refusal":null,)"
              R"("reasoning_content":"because"},"logprobs":null,"finish_reason":"stop"})");
    const gpt::AnswerParts calls = {.tool_calls = ordered_json::array({1})};
    EXPECT_EQ(choice_json(kHead, 0, calls, nullptr, "tool_calls").dump(),
              R"({"index":0,"message":{"role":"assistant","content":null,"refusal":null,)"
              R"("tool_calls":[1]},"logprobs":null,"finish_reason":"tool_calls"})");
    const AnswerHead completion = {.id = "cmpl-1", .model = "m", .created = 5};
    EXPECT_EQ(choice_json(completion, 0, plain, nullptr, "length").dump(),
              R"({"index":0,"text":"hi","logprobs":null,"finish_reason":"length"})");
}

TEST(ServeAnswerJson, EventsAreServerSentOnes) {
    const ordered_json part = part_json(0, true, {{"content", "a\nb\xff"}}, nullptr, "");
    const std::string event = event_text(kHead, ordered_json::array({part}), nullptr);
    const ordered_json usage = usage_json({.prompt = 3, .cached = 1, .generated = 2});
    const auto events = test::events_of(event + event_text(kHead, ordered_json::array(), &usage));
    ASSERT_EQ(events.size(), 2u);
    EXPECT_EQ(events[0],
              R"({"id":"chatcmpl-1","object":"chat.completion.chunk","created":5,"model":"m",)"
              R"("choices":[{"index":0,"delta":{"content":"a\nb)"
              "\xEF\xBF\xBD"
              R"("},"logprobs":null,"finish_reason":null}]})");
    EXPECT_EQ(ordered_json::parse(events[1])["usage"].dump(),
              R"({"prompt_tokens":3,"completion_tokens":2,"total_tokens":5,)"
              R"("prompt_tokens_details":{"cached_tokens":1}})");
}

TEST(ServeAnswerJson, IdsAreNotRepeated) {
    const AnswerHead one = new_answer_head("m", true), other = new_answer_head("m", true);
    EXPECT_TRUE(one.id.starts_with("chatcmpl-"));
    EXPECT_NE(one.id, other.id);
    EXPECT_TRUE(new_answer_head("m", false).id.starts_with("cmpl-"));
}

TEST(ServeAnswerJson, Base64IsThatOfLittleEndianFloats) {
    EXPECT_EQ(base64_of({}), "");
    EXPECT_EQ(base64_of({1.0f}), "AACAPw==");
    EXPECT_EQ(base64_of({1.0f, -2.5f}), "AACAPwAAIMA=");
    EXPECT_EQ(base64_of({1.0f, -2.5f, 0.0f}), "AACAPwAAIMAAAAAA");
}

TEST(ServeErrors, HaveOpenAisForm) {
    const WebResponse response = error_response(WebError(429, "wait", "", "busy"));
    EXPECT_EQ(response.status, 429);
    EXPECT_EQ(
        response.body,
        R"({"error":{"message":"wait","type":"rate_limit_error","param":null,"code":"busy"}})");
    ASSERT_EQ(response.headers.size(), 1u);
    EXPECT_EQ(response.headers[0].first, "Retry-After");
    EXPECT_EQ(
        error_json(WebError(400, "no", "n")).dump(),
        R"({"error":{"message":"no","type":"invalid_request_error","param":"n","code":null}})");
}

TEST(ServeApiKeys, AreReadFromAFile) {
    const test::TemporaryDirectory directory;
    const auto file = directory.path() / "keys";
    test::write_text(file, "# ours\nsk-one\r\n\nsk-two");
    const ApiKeys keys = ApiKeys::read(file);
    EXPECT_TRUE(keys.accept("Bearer sk-one"));
    EXPECT_TRUE(keys.accept("Bearer sk-two"));
    for (const char* wrong : {"", "Bearer ", "Bearer sk-on", "Bearer sk-onesk-one", "sk-one",
                              "Bearer # ours", "bearer sk-one", "Bearer sk-twx"})
        EXPECT_FALSE(keys.accept(wrong)) << wrong;
    EXPECT_TRUE(ApiKeys().accept(""));
    test::write_text(file, "\n# none\n");
    test::expect_contains(test::error_of([&] { ApiKeys::read(file); }), "no key");
}

TEST(ServePaths, AreDecodedWithoutTheirQuery) {
    EXPECT_EQ(path_of("/v1/models?a=b"), "/v1/models");
    EXPECT_EQ(path_of("/v1/models/a%2Fb%20c"), "/v1/models/a/b c");
    EXPECT_EQ(path_of("/a%2"), "/a%2");
    EXPECT_EQ(path_of("/a%zz%"), "/a%zz%");
    EXPECT_EQ(path_of(""), "");
}

TEST(ServePaths, HostsAreAddressesOrLocalhost) {
    for (const char* local : {"", "127.0.0.1", "127.0.0.1:8080", "10.0.0.7:1", "localhost",
                              "localhost:8080", "a.localhost:1", "[::1]:8080", "[::1]"})
        EXPECT_TRUE(is_local_host(local)) << local;
    for (const char* other : {"example.org", "example.org:8080", "localhost.example.org",
                              "127.0.0.1.example.org", "notlocalhost:1"})
        EXPECT_FALSE(is_local_host(other)) << other;
}

TEST(ServeMetrics, AreGroupedAndHistogramsAreCumulative) {
    Histogram histogram({1, 2});
    for (const double value : {0.5, 1.0, 1.5, 7.0}) histogram.add(value);
    MetricsText text;
    text.begin_labels(metric_label("model_name", "m"));
    histogram.write("seconds", text);
    text.add("tokens", "counter", 123456789);
    text.begin_labels(metric_label("model_name", "\"n\""));
    text.add("tokens", "counter", 2, metric_label("a", "b"));
    EXPECT_EQ(text.text(),
              "# TYPE hark_seconds histogram\n"
              "hark_seconds_bucket{model_name=\"m\",le=\"1\"} 2\n"
              "hark_seconds_bucket{model_name=\"m\",le=\"2\"} 3\n"
              "hark_seconds_bucket{model_name=\"m\",le=\"+Inf\"} 4\n"
              "hark_seconds_sum{model_name=\"m\"} 10\n"
              "hark_seconds_count{model_name=\"m\"} 4\n"
              "# TYPE hark_tokens counter\n"
              "hark_tokens{model_name=\"m\"} 123456789\n"
              "hark_tokens{model_name=\"\\\"n\\\"\",a=\"b\"} 2\n");
}

}  // namespace
}  // namespace hark::serve
