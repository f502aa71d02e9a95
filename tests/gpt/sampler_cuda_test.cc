// The GPU's choice of a token against the host's sampler. Skipped without a GPU.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "gpt/engine/gpu_decode_stream.h"
#include "gpt/sampling/sampler.h"
#include "kernels/sampling/distribution.h"
#include "kernels/sampling/gpu_sampler.h"
#include "support/ops.h"

namespace hark::test {
namespace {

using namespace hark::gpt;

constexpr float kNever = -std::numeric_limits<float>::infinity();

struct Chosen {
    int32_t token = -1, kept = 0;
    double logprob = 0;
};

// Logits and a history on the GPU, and what is chosen by one set of options.
class OnGpu {
  public:
    OnGpu(Context& ctx, const std::vector<float>& logits, const std::vector<int32_t>& history,
          const SamplerOptions& options, const TokenMask& mask = {})
        : ctx_(ctx), device_(ctx.arena.source()), host_(ctx.host_arena.source()) {
        call_.n = static_cast<int32_t>(logits.size());
        call_.params = sampling_params_of(options);
        call_.ring_size = 2;
        call_.logits = static_cast<const float*>(up(logits.data(), logits.size() * sizeof(float)));
        if (!mask.empty())
            call_.mask = static_cast<const uint64_t*>(up(mask.data(), mask.size() * 8));
        call_.ring = static_cast<TokenRingEntry*>(
            host_.tensor(Dtype::u8, {sizeof(TokenRingEntry) * 2}).data);
        call_.scratch = device_.tensor(Dtype::u8, {sample_scratch(std::ssize(logits))}).data;
        std::vector<uint8_t> seen(logits.size());
        for (const int32_t id : history) seen[static_cast<size_t>(id)] = 1;
        if (options.repetition_penalty != 1)
            call_.seen = static_cast<uint8_t*>(up(seen.data(), seen.size()));
        state_ = device_.tensor(Dtype::u8, {sizeof(DecodeState)});
        call_.state = static_cast<DecodeState*>(state_.data);
        draws_ = device_.tensor(Dtype::u8, {sizeof(double) * 4});
        call_.uniform = static_cast<const double*>(draws_.data);
    }
    Chosen operator()(double u) {
        const double draws[4] = {0.5, 0.5, 0.5, u};
        cuda_runtime().upload(ctx_, draws_.data, draws, sizeof draws);
        const DecodeState before{17, 5, 6, 3, ++serial_};
        cuda_runtime().upload(ctx_, state_.data, &before, sizeof before);
        if (call_.seen) seen_before_ = seen();
        cuda_sampler().sample(ctx_, call_);
        cuda_runtime().download(ctx_, &after_, state_.data, sizeof after_);
        const TokenRingEntry& entry = call_.ring[serial_ % 2];
        for (const uint64_t word : {entry.token, entry.logprob, entry.kept})
            EXPECT_EQ(word >> 32, serial_);
        const auto low = [](uint64_t word) { return static_cast<uint32_t>(word); };
        const Chosen chosen{static_cast<int32_t>(low(entry.token)),
                            static_cast<int32_t>(low(entry.kept)),
                            std::bit_cast<float>(low(entry.logprob))};
        EXPECT_EQ(after_.token, chosen.token);
        EXPECT_EQ(after_.position, 6);
        EXPECT_EQ(after_.length, 7);
        EXPECT_EQ(after_.draw, 4);
        EXPECT_EQ(after_.serial, serial_ + 1);
        if (call_.seen) {
            std::vector<uint8_t> wanted = seen_before_;
            wanted[static_cast<size_t>(chosen.token)] = 1;
            EXPECT_EQ(seen(), wanted);
            cuda_runtime().upload(ctx_, call_.seen, seen_before_.data(), seen_before_.size());
        }
        return chosen;
    }

  private:
    void* up(const void* from, size_t bytes) {
        const Tensor tensor = device_.tensor(Dtype::u8, {static_cast<int64_t>(bytes)});
        cuda_runtime().upload(ctx_, tensor.data, from, bytes);
        return tensor.data;
    }
    std::vector<uint8_t> seen() {
        std::vector<uint8_t> values(static_cast<size_t>(call_.n));
        cuda_runtime().download(ctx_, values.data(), call_.seen, values.size());
        return values;
    }

    Context& ctx_;
    Arena device_, host_;
    SamplerArgs call_;
    Tensor state_, draws_;
    DecodeState after_;
    std::vector<uint8_t> seen_before_;
    uint32_t serial_ = 0;
};

// Where the tokens that the host keeps begin and end on the way from 0 to 1.
struct HostDraw {
    HostDraw(const std::vector<float>& logits, const std::vector<int32_t>& history,
             const SamplerOptions& options, const TokenMask& mask)
        : filtered(logits) {
        if (!mask.empty()) keep_allowed(filtered, mask);
        process_logits(filtered, {history, history.size()}, options);
        const double total = log_sum_exp(filtered);
        double sum = 0;
        for (size_t id = 0; id < filtered.size(); ++id) {
            if (filtered[id] == kNever) continue;
            tokens.push_back(static_cast<int32_t>(id));
            begins.push_back(sum);
            sum += std::exp(filtered[id] - total);
        }
        begins.push_back(sum);
    }
    bool is_near_boundary(double u) const {
        const auto next = std::lower_bound(begins.begin(), begins.end(), u);
        return (next != begins.end() && *next - u < kRounding) ||
               (next != begins.begin() && u - *(next - 1) < kRounding);
    }
    static constexpr double kRounding = 1e-5;
    std::vector<float> filtered;
    std::vector<int32_t> tokens;
    std::vector<double> begins;  // and the last one's end
};

void expect_like_host(Context& ctx, const std::vector<float>& logits, const SamplerOptions& options,
                      const TokenMask& mask = {}) {
    std::vector<int32_t> history;
    const auto n = static_cast<int32_t>(logits.size());
    for (int32_t id = 0; id < n; id += 1 + n / 40) history.push_back(id);
    history.push_back(static_cast<int32_t>(argmax(logits)));
    const HostDraw host(logits, history, options, mask);
    OnGpu gpu(ctx, logits, history, options, mask);
    if (options.temperature == 0) {
        const Chosen chosen = gpu(0.5);
        EXPECT_EQ(chosen.token, argmax(host.filtered));
        EXPECT_NEAR(chosen.logprob, log_probability(logits, chosen.token), 1e-5);
        return;
    }
    std::vector<double> us = {0, 0.25, 0.7, std::nextafter(1.0, 0.0)};
    // Tokens that are kept, each by the middle of its part; not all where they are many.
    for (size_t i = 0; i < host.tokens.size(); i += 1 + host.tokens.size() / 12)
        us.push_back((host.begins[i] + host.begins[i + 1]) / 2);
    for (const double u : us) {
        const Chosen chosen = gpu(u);
        EXPECT_EQ(chosen.kept, std::ssize(host.tokens)) << u;
        const bool near = host.is_near_boundary(u);
        EXPECT_TRUE(near || chosen.token == draw(host.filtered, 1, u)) << u << " " << chosen.token;
        ASSERT_GE(chosen.token, 0);
        EXPECT_GT(host.filtered[static_cast<size_t>(chosen.token)], kNever) << u;
        EXPECT_NEAR(chosen.logprob, log_probability(logits, chosen.token), 1e-5);
    }
}

struct Table {
    std::string name;
    std::vector<float> logits;
};

constexpr size_t kTables = 52;

std::vector<Table> make_tables() {
    std::vector<Table> tables;
    for (const int64_t n : {1, 2, 63, 65, 1000, 4096, 50257, 65535, 65536, 65537, 151936, 262144}) {
        std::vector<float> logits = random_values(n, static_cast<unsigned>(n), 3);
        tables.push_back({concat("around 0, ", n), logits});
        for (float& logit : logits) logit -= 110;  // as the trained GPT-2's are
        tables.push_back({concat("around -110, ", n), logits});
        for (float& logit : logits) logit = std::round(logit);
        tables.push_back({concat("ties, ", n), logits});
        for (float& logit : logits) logit = (logit + 110) / 30;
        tables.push_back({concat("close ties around 0, ", n), logits});
    }
    std::vector<float> logits = random_values(50257, 7, 1);
    for (size_t i = 0; i < logits.size(); ++i)
        if (i % 7 != 3) logits[i] = kNever;
    tables.push_back({"few", logits});
    std::fill(logits.begin(), logits.end(), -3.0f);
    tables.push_back({"equal", logits});
    logits[41234] = 20;
    tables.push_back({"sure", logits});
    tables.push_back({"many equal", std::vector<float>(262144, 1.5f)});
    return tables;
}

const std::vector<SamplerOptions> kSamplerCudaOptions = {
    {.temperature = 0},
    {.temperature = 0, .repetition_penalty = 1.3},
    {},
    {.temperature = 1, .top_k = 1, .top_p = 1},
    {.temperature = 0.7, .top_k = 5, .top_p = 0.8037},
    {.temperature = 1.3, .top_k = 300, .top_p = 1},
    {.temperature = 1, .top_k = 3000, .top_p = 0.5037},
    {.temperature = 1, .top_k = 0, .top_p = 0.9037},
    {.temperature = 0.5, .top_k = 0, .top_p = 0.1037},
    {.temperature = 2, .top_k = 0, .top_p = 1},
    {.temperature = 1, .top_k = 0, .top_p = 1, .min_p = 0.05},
    {.temperature = 0.9, .top_k = 50, .top_p = 0.9537, .min_p = 0.02, .repetition_penalty = 1.3},
    {.temperature = 1, .top_k = 40, .top_p = 1, .repetition_penalty = 0.7},
};

class SamplerOnGpu : public testing::TestWithParam<size_t> {};

TEST_P(SamplerOnGpu, ChoosesLikeTheHost) {
    TestDevice device(kCudaF32Case);
    if (!device) GTEST_SKIP() << device.why_not();
    static const std::vector<Table> kMade = make_tables();
    ASSERT_EQ(kMade.size(), kTables);
    const Table& table = kMade[GetParam()];
    for (size_t i = 0; i < kSamplerCudaOptions.size(); ++i) {
        SCOPED_TRACE(concat(table.name, ", options ", i));
        expect_like_host(device.ctx(), table.logits, kSamplerCudaOptions[i]);
        if (testing::Test::HasFatalFailure()) return;
    }
}

// A mask of `n` tokens that allows every step-th from `first` on.
TokenMask mask_of(size_t n, size_t first, size_t step) {
    TokenMask mask(static_cast<size_t>(mask_words(static_cast<int64_t>(n))));
    for (size_t id = first; id < n; id += step) mask[id / 64] |= uint64_t{1} << (id % 64);
    return mask;
}

TEST_P(SamplerOnGpu, ChoosesLikeTheHostWithMasks) {
    TestDevice device(kCudaF32Case);
    if (!device) GTEST_SKIP() << device.why_not();
    static const std::vector<Table> kMade = make_tables();
    const Table& table = kMade[GetParam()];
    const size_t n = table.logits.size();
    if (table.name == "few") GTEST_SKIP() << "its masks may leave no token";
    for (const size_t step : {size_t{1}, size_t{9}, n / 3 + 1})
        for (const size_t options : {0, 1, 2, 4, 7, 10, 11}) {
            SCOPED_TRACE(concat(table.name, ", options ", options, ", every ", step));
            expect_like_host(device.ctx(), table.logits, kSamplerCudaOptions[options],
                             mask_of(n, n / 5, step));
            if (testing::Test::HasFatalFailure()) return;
        }
    const TokenMask none(static_cast<size_t>(mask_words(static_cast<int64_t>(n))));
    EXPECT_EQ(OnGpu(device.ctx(), table.logits, {}, kSamplerCudaOptions[0], none)(0.5).token, -1);
    EXPECT_EQ(OnGpu(device.ctx(), table.logits, {}, kSamplerCudaOptions[2], none)(0.5).token, -1);
}

INSTANTIATE_TEST_SUITE_P(Tables, SamplerOnGpu, testing::Range<size_t>(0, kTables));

TEST(SamplerOnGpuEdge, LogitsThatAreNoNumbersGiveNoToken) {
    TestDevice device(kCudaF32Case);
    if (!device) GTEST_SKIP() << device.why_not();
    const std::vector<float> logits(500, std::numeric_limits<float>::quiet_NaN());
    for (const SamplerOptions& options :
         {kSamplerCudaOptions[0], kSamplerCudaOptions[2], kSamplerCudaOptions[7]})
        EXPECT_EQ(OnGpu(device.ctx(), logits, {}, options)(0.5).token, -1);
}

}  // namespace
}  // namespace hark::test
