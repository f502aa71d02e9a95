// Guessed tokens do not change what is drawn: texts of two tokens, a million tokens drawn with
// guesses, have the probabilities of the model that checks them.
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "core/random.h"
#include "core/tensor.h"
#include "gpt/engine/model_runner.h"

namespace hark::gpt {
namespace {

constexpr int64_t kTokens = 8, kTexts = 500'000;
// The value that a chi-square of 63 degrees of freedom exceeds once in a million.
constexpr double kMostChiSquare = 131.4;

// A model whose logits depend on the last token alone: (last token, next token).
using Bigrams = std::array<std::array<float, kTokens>, kTokens>;

Bigrams random_bigrams(uint64_t seed) {
    Random random(seed);
    Bigrams bigrams;
    for (auto& row : bigrams)
        for (float& logit : row) logit = static_cast<float>(4 * random.uniform() - 2);
    return bigrams;
}

std::array<double, kTokens> softmax(const std::array<float, kTokens>& logits) {
    std::array<double, kTokens> values{};
    double total = 0;
    for (size_t i = 0; i < kTokens; ++i) total += values[i] = std::exp(double{logits[i]});
    for (double& value : values) value /= total;
    return values;
}

// Texts by their two tokens.
using Counts = std::array<std::array<int64_t, kTokens>, kTokens>;

double chi_square(const Counts& counts, const Bigrams& model, int32_t prompt) {
    const auto first = softmax(model[static_cast<size_t>(prompt)]);
    double sum = 0;
    for (size_t a = 0; a < kTokens; ++a) {
        const auto second = softmax(model[a]);
        for (size_t b = 0; b < kTokens; ++b) {
            const double expected = first[a] * second[b] * double{kTexts};
            const double more = static_cast<double>(counts[a][b]) - expected;
            sum += more * more / expected;
        }
    }
    return sum;
}

struct Outcome {
    Counts counts{}, guesses{};
    int64_t guessed = 0, accepted = 0;
};

// Draws the texts as the engine does: guesses, then checks them with the logits of each place. A
// guess shares the text's draws, as a draft model's does, or has draws of its own.
Outcome draw(const Bigrams& model, const Bigrams& draft, int32_t prompt, bool shares_draws) {
    Outcome outcome;
    for (int64_t n = 0; n < kTexts; ++n) {
        TextRequest request{.prompt = {prompt}};
        request.sampler = {.temperature = 1, .top_k = 0, .top_p = 1};
        request.seed = static_cast<uint64_t>(n);
        request.max_tokens = 2;
        BatchSequence sequence(0, request);
        while (sequence.tokens().size() < 3) {
            const auto row = static_cast<size_t>(sequence.tokens().back());
            std::vector<float> logits(model[row].begin(), model[row].end());
            if (sequence.tokens().size() == 1) {
                Sampler guesser = sequence.sampler;
                if (!shares_draws) guesser.begin(request.prompt, request.seed + kTexts);
                std::array<float, kTokens> guessed = draft[row];
                sequence.drafts = {guesser(guessed)};
                const auto& after = model[static_cast<size_t>(sequence.drafts[0])];
                logits.insert(logits.end(), after.begin(), after.end());
                guessed = draft[static_cast<size_t>(sequence.drafts[0])];
                ++outcome.guesses[static_cast<size_t>(sequence.drafts[0])]
                                 [static_cast<size_t>(guesser(guessed))];
            }
            const auto rows = static_cast<int64_t>(logits.size()) / kTokens;
            PassResult result{&sequence, {}, {}};
            sample(result, Tensor(logits.data(), Dtype::f32, {rows, kTokens}), kTokens);
            outcome.guessed += rows - 1;
            outcome.accepted += std::ssize(result.sampled) - 1;
            sequence.drafts.clear();
        }
        ++outcome.counts[static_cast<size_t>(sequence.tokens()[1])]
                        [static_cast<size_t>(sequence.tokens()[2])];
    }
    return outcome;
}

TEST(Speculation, KeepsTheDistributionOfTheModel) {
    const Bigrams model = random_bigrams(1), draft = random_bigrams(2);
    for (const bool shares_draws : {true, false}) {
        SCOPED_TRACE(shares_draws ? "the text's draws" : "draws of its own");
        const Outcome outcome = draw(model, draft, 3, shares_draws);
        EXPECT_LT(chi_square(outcome.counts, model, 3), kMostChiSquare);
        // The guesses have another distribution, and this test can tell it.
        EXPECT_GT(chi_square(outcome.guesses, model, 3), 100 * kMostChiSquare);
        EXPECT_LT(chi_square(outcome.guesses, draft, 3), kMostChiSquare);
        EXPECT_EQ(outcome.guessed, kTexts);
        EXPECT_GT(outcome.accepted, kTexts / 20);
        EXPECT_LT(outcome.accepted, kTexts * 19 / 20);
    }
}

}  // namespace
}  // namespace hark::gpt
