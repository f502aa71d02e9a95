// The demo model on a GPU: transformers' texts in f32, and steps that run ahead of the host.
// Skipped without a GPU.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <tuple>

#include "core/json/json.h"
#include "gpt/answers/generate.h"
#include "gpt/decoder/model.h"
#include "gpt/engine/decode_stream.h"
#include "gpt/engine/sequence.h"
#include "support/golden.h"
#include "support/on_gpu.h"
#include "support/ops.h"
#include "support/process.h"

namespace hark::test {
namespace {

using namespace hark::gpt;
using nlohmann::json;

struct GptCudaDemo {
    explicit GptCudaDemo(const std::string& dtype)
        : ctx(make_cuda_context(0)),
          model(load_model(gpt_demo(), precision_of(dtype, Device::cuda), ctx.arena.source())) {}
    Context ctx;
    Model model;
    std::unique_ptr<Tokenizer> tokenizer = Tokenizer::load(gpt_demo());
};

class GptOnGpu : public OnGpu {
  protected:
    static GptCudaDemo& demo(const std::string& dtype) {
        static std::map<std::string, std::unique_ptr<GptCudaDemo>> loaded;
        std::unique_ptr<GptCudaDemo>& one = loaded[dtype];
        if (!one) one = std::make_unique<GptCudaDemo>(dtype);
        return *one;
    }
    static const json& cases() {
        static const json kGolden = golden("gpt.json")["cases"];
        return kGolden;
    }
    // How many tokens of each golden text come out as they are there, by the end-of-text token.
    static std::vector<std::pair<int64_t, int64_t>> equal_of_wanted(const std::string& dtype) {
        GptCudaDemo& d = demo(dtype);
        GenerateOptions options;
        options.sampler.temperature = 0;
        Generator generator(d.ctx, d.model, *d.tokenizer, options);
        std::vector<std::pair<int64_t, int64_t>> result;
        for (const json& item : cases()) {
            auto wanted = item["tokens"].get<std::vector<int32_t>>();
            wanted.erase(std::find(wanted.begin(), wanted.end(), 4095), wanted.end());
            std::string said;
            const Completion answer = generator(item["prompt"].get<std::string>(), 0,
                                                [&](std::string_view text) { said += text; });
            EXPECT_EQ(said, answer.text);
            EXPECT_TRUE(is_valid_utf8(said));
            const auto [ours, theirs] = std::mismatch(answer.tokens.begin(), answer.tokens.end(),
                                                      wanted.begin(), wanted.end());
            result.emplace_back(ours - answer.tokens.begin(), std::ssize(wanted));
            if (dtype != "f32") continue;
            EXPECT_EQ(answer.tokens, wanted);
            EXPECT_EQ(answer.text, replace_invalid(d.tokenizer->decode(wanted)));
        }
        return result;
    }
};

using Text = std::vector<std::pair<int32_t, double>>;  // tokens and log probabilities

Text take_tokens(DecodeStream& stream, int64_t n) {
    Text text;
    for (int64_t i = 0; i < n; ++i) {
        const SampledToken choice = stream.next();
        text.emplace_back(choice.token, choice.logprob);
    }
    return text;
}

TEST_F(GptOnGpu, GreedyEqualsGoldenInF32) { equal_of_wanted("f32"); }

// Rounding changes a text if two tokens are nearly as likely; not at once, and not in most.
TEST_F(GptOnGpu, GreedyInOtherTypesIsNearGolden) {
    for (const auto& [dtype, least] : {std::pair{"f16", 0.7}, std::pair{"bf16", 0.2},
                                       std::pair{"int8", 0.2}, std::pair{"fp8", 0.1}}) {
        int64_t equal = 0, wanted = 0;
        for (const auto& [ours, theirs] : equal_of_wanted(dtype)) equal += ours, wanted += theirs;
        const double share = static_cast<double>(equal) / static_cast<double>(wanted);
        std::printf("%s: %.3f of the tokens up to the first difference\n", dtype, share);
        EXPECT_GT(share, least) << dtype;
    }
}

// The logits after pieces of the texts of samples/. A piece is one pass of as many rows as are
// multiplied by fp8 activations.
TEST_F(GptOnGpu, LogitsInOtherTypesAreNearF32s) {
    constexpr size_t kPiece = 40;
    std::ifstream lines(source_dir() / "samples/transcripts.tsv");
    std::string all;
    for (std::string line; std::getline(lines, line);)
        all += line.substr(line.rfind('\t') + 1) + ' ';
    const std::vector<int32_t> ids = demo("f32").tokenizer->encode(all);
    ASSERT_GT(ids.size(), 8 * kPiece);
    const auto logits_of = [&](const std::string& dtype, size_t begin) {
        GptCudaDemo& d = demo(dtype);
        d.ctx.batch_invariant = false;
        Sequence sequence(d.ctx, d.model);
        const auto logits = sequence.forward_to_host(d.ctx, std::span(ids).subspan(begin, kPiece));
        d.ctx.batch_invariant = true;
        return std::vector<float>(logits.begin(), logits.end());
    };
    for (const auto& [dtype, most] : {std::pair{"f16", 0.01}, std::pair{"bf16", 0.05},
                                      std::pair{"int8", 0.05}, std::pair{"fp8", 0.2}}) {
        double error = 0, size = 0;
        int same = 0, pieces = 0;
        for (size_t begin = 0; begin + kPiece <= ids.size(); begin += kPiece, ++pieces) {
            const std::vector<float> exact = logits_of("f32", begin),
                                     ours = logits_of(dtype, begin);
            for (size_t i = 0; i < exact.size(); ++i) {
                error += std::pow(ours[i] - exact[i], 2);
                size += std::pow(exact[i], 2);
            }
            same += std::ranges::max_element(exact) - exact.begin() ==
                    std::ranges::max_element(ours) - ours.begin();
        }
        const double relative = std::sqrt(error / size);
        std::printf("%s: logits %.2e, the likeliest token in %d of %d\n", dtype, relative, same,
                    pieces);
        EXPECT_GT(relative, 0) << dtype;
        EXPECT_LT(relative, most) << dtype;
    }
}

const std::vector<SamplerOptions> kOptions = {
    {.temperature = 0},
    {},
    {.temperature = 1, .top_k = 0, .top_p = 0.9},
    {.temperature = 1, .top_k = 0, .top_p = 1, .min_p = 0.02},
    {.temperature = 0, .repetition_penalty = 1.3},
    {.temperature = 0.9, .top_k = 30, .top_p = 0.9, .repetition_penalty = 1.2},
};

// The host's sampler on the same logits, for texts that pass from one recorded step to the next.
TEST_F(GptOnGpu, ChoosesLikeTheHost) {
    for (const std::string dtype : {"f32", "f16"})
        for (size_t i = 0; i < kOptions.size(); ++i) {
            SCOPED_TRACE(concat(dtype, ", options ", i));
            GptCudaDemo& d = demo(dtype);
            const auto gpu =
                make_decode_stream(d.ctx, d.model, d.tokenizer->vocab_size(), kOptions[i]);
            const auto host =
                make_host_decode_stream(d.ctx, d.model, d.tokenizer->vocab_size(), kOptions[i]);
            for (const auto& [repeats, n] : {std::pair{1, 40}, std::pair{30, 100}}) {
                std::string prompt;
                for (int repeat = 0; repeat < repeats; ++repeat)
                    prompt += "The river ran down to the sea. ";
                const std::vector<int32_t> ids = d.tokenizer->encode(prompt);
                for (const auto& stream : {gpu.get(), host.get()}) stream->begin(ids, 3, n);
                const Text ours = take_tokens(*gpu, n), theirs = take_tokens(*host, n);
                for (size_t k = 0; k < ours.size(); ++k) {
                    ASSERT_EQ(ours[k].first, theirs[k].first) << ids.size() << " + " << k;
                    EXPECT_NEAR(ours[k].second, theirs[k].second, 1e-5);
                }
            }
        }
}

// Neither how many more tokens are wanted, nor a text that is left in the middle, changes a text.
TEST_F(GptOnGpu, HowFarAheadMakesNoDifference) {
    GptCudaDemo& d = demo("f16");
    const std::vector<int32_t> ids = d.tokenizer->encode("Once upon a time"), other = {1, 2, 3};
    for (const SamplerOptions& options : kOptions) {
        const auto stream = make_decode_stream(d.ctx, d.model, d.tokenizer->vocab_size(), options);
        stream->begin(ids, 5, 70);
        const Text whole = take_tokens(*stream, 70);
        for (const int64_t wanted : {1, 15, 16, 17, 33}) {
            stream->begin(other, 6, 100);
            take_tokens(*stream, wanted % 5);
            stream->begin(ids, 5, wanted);
            EXPECT_EQ(take_tokens(*stream, wanted), Text(whole.begin(), whole.begin() + wanted));
        }
    }
}

TEST_F(GptOnGpu, TheContextIsFilledToItsEnd) {
    GptCudaDemo& d = demo("f32");
    GenerateOptions options;
    options.sampler.temperature = 0;
    std::string prompt;
    while (d.tokenizer->encode(prompt + " sea").size() <= 508) prompt += " sea";
    const int64_t room = 512 - std::ssize(d.tokenizer->encode(prompt)) + 1;
    Generator generator(d.ctx, d.model, *d.tokenizer, options);
    const Completion answer = generator(prompt, 0);
    if (answer.finish == Finish::end_of_text) FAIL() << "the text has ended by itself";
    EXPECT_EQ(answer.finish, Finish::context_full);
    EXPECT_EQ(std::ssize(answer.tokens), room);
}

}  // namespace
}  // namespace hark::test
