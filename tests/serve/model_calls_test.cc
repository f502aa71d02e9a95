// What other processes are told of a text.
#include "serve/text/model_calls.h"

#include <gtest/gtest.h>

#include <limits>

namespace hark::test {
namespace {

using namespace hark::serve;

TEST(ModelCalls, OptionsOfASamplerArriveAsTheyAre) {
    gpt::SamplerOptions options{.temperature = 0.1,
                                .top_k = 2,
                                .top_p = 1.0 / 3,
                                .min_p = 0.4,
                                .repetition_penalty = 1.5,
                                .presence_penalty = -0.6,
                                .frequency_penalty = 0.7,
                                .typical_p = 0.8,
                                .xtc_probability = 0.9,
                                .xtc_threshold = 0.25,
                                .mirostat = 2,
                                .mirostat_tau = 6,
                                .mirostat_eta = 0.2};
    options.dry = {.multiplier = 0.3, .base = 1.25, .allowed_length = 4, .breakers = {1, 5}};
    options.logit_bias = {{3, -std::numeric_limits<double>::infinity()}, {4, 1e-9}};
    const std::vector<uint8_t> bytes = nlohmann::json::to_cbor(sampler_json(options));
    EXPECT_EQ(sampler_of(nlohmann::json::from_cbor(bytes)), options);
}

}  // namespace
}  // namespace hark::test
