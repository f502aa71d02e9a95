// Answers of hark-serve that do not end where the model ends them.
#include "tools/hark_serve.h"

using namespace hark::test;

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
