// What hark-serve counts of its answers, and answers that do not end where the model ends them.
#include "tools/hark_serve.h"

using namespace hark::test;

// Of the answers that have ended, by vLLM's names.
TEST(HarkServeAnswers, TheirTimesAndTokensAreCounted) {
    const Served server(kServedDemo);
    const std::string model = "{model_name=\"gpt-demo\"}";
    const auto metric = [&](const std::string& name, const std::string& what) {
        return server.metric("hark_request_" + name + what + model);
    };
    double prompts = 0;
    for (int i = 0; i < 2; ++i) {
        const TestReply reply =
            server.post("/v1/completions", completion("Once upon a time", {{"n", 2}}));
        prompts += 2 * json::parse(reply.body)["usage"]["prompt_tokens"].get<double>();
    }
    EXPECT_EQ(metric("prompt_tokens", "_sum"), prompts);
    EXPECT_EQ(metric("generation_tokens", "_sum"), 4 * 20);
    double seconds = 0;
    for (const std::string part : {"queue", "prefill", "decode"}) {
        EXPECT_EQ(metric(part + "_time_seconds", "_count"), 4) << part;
        const double sum = metric(part + "_time_seconds", "_sum");
        EXPECT_GT(sum, 0) << part;
        seconds += sum;
    }
    // They follow one another, from the request to the last token.
    const double whole = server.metric("hark_e2e_request_latency_seconds_sum" + model);
    EXPECT_LE(seconds, whole + 1e-3);
    EXPECT_GT(seconds, whole / 2);
}

TEST(HarkServeAnswers, GoOnAfterTheTokenThatEndsATextIfAsked) {
    const Served server(kServedDemo);
    json request = completion("Once", {{"logit_bias", {{"4095", 100}}}});  // <|endoftext|>
    const auto answer = [&] { return json::parse(server.post("/v1/completions", request).body); };
    EXPECT_EQ(answer()["choices"][0]["finish_reason"], "stop");
    request["ignore_eos"] = true;
    EXPECT_EQ(answer()["usage"]["completion_tokens"], 20);
    EXPECT_EQ(answer()["choices"][0]["finish_reason"], "length");
    request["regex"] = "a+";
    expect_refused(server.post("/v1/completions", request), 400, "constrained answer");
}
