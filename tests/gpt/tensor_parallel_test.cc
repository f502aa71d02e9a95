// A model whose slices several processes compute together is the model that one computes.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cmath>
#include <cstring>
#include <numeric>

#include "core/error.h"
#include "gpt/decoder/model.h"
#include "gpt/engine/decode_stream.h"
#include "gpt/engines.h"
#include "gpt/families/family.h"
#include "gpt/families/model_file.h"
#include "gpt/families/tensor_slices.h"
#include "support/error_of.h"
#include "support/expect.h"
#include "support/ranks.h"

using namespace hark;
using namespace hark::gpt;
using namespace hark::test;

namespace {

std::vector<std::string> shared_families() {
    std::vector<std::string> names;
    const nlohmann::json cases = golden("families.json");
    for (const auto& [name, of] : cases.items())
        if (!name.starts_with("olmo")) names.push_back(name);
    return names;
}

// The weights of a tiny model in the form that the shared decoder reads.
class FamilyModel {
  public:
    FamilyModel(const std::string& name, const DecoderConfig& config)
        : weights_(config.family.starts_with("gemma"), name.find("mxfp4") != name.npos) {
        const Family& family = family_of(config.family, name);
        if (family.unpack) unpacked_ = family.unpack(weights_, config);
    }
    TensorSource& source() { return unpacked_ ? *unpacked_ : weights_; }

  private:
    FamilyWeights weights_;
    std::unique_ptr<TensorSource> unpacked_;
};

// An odd number of tokens and of layers' heads that the ranks divide.
DecoderConfig config_of(const std::string& name) {
    DecoderConfig config = parse_config(family_config(name).dump(), name);
    config.n_vocab -= 1;
    return config;
}

Model model_of(TestDevice& device, const std::string& name, const DecoderConfig& config,
               const std::string& dtype, Communicator& ranks) {
    FamilyModel weights(name, config);
    return read_model(weights.source(), config, precision_of(dtype, device.ctx().device),
                      device.ctx().arena.source(), 1, ranks);
}

std::vector<int32_t> prompt_of(int64_t n, int64_t vocabulary) {
    std::vector<int32_t> prompt;
    for (int64_t i = 0; i < n; ++i)
        prompt.push_back(static_cast<int32_t>((7 + 31 * i) % vocabulary));
    return prompt;
}

// Logits of a prompt's last token, read in pieces, and of three steps after it.
std::vector<float> all_logits(Context& ctx, const Model& model) {
    Sequence sequence(ctx, model, {.context = 64, .prefill_rows = 10});
    const std::vector<int32_t> ids = prompt_of(40, model.config.n_vocab);
    std::vector<float> all;
    const auto add = [&](std::span<const int32_t> tokens) {
        const std::span<const float> logits = sequence.forward_to_host(ctx, tokens);
        all.insert(all.end(), logits.begin(), logits.end());
    };
    add(std::span(ids).first(37));
    for (size_t i = 37; i < ids.size(); ++i) add(std::span(ids).subspan(i, 1));
    return all;
}

// Throws Error unless the ranks have the model's logits, with the same bits on all.
void check_logits(TestDevice& device, const std::string& name, Communicator& ranks,
                  const std::string& dtype, float share) {
    const DecoderConfig config = config_of(name);
    const Model whole = model_of(device, name, config, dtype, no_other_ranks()),
                slice = model_of(device, name, config, dtype, ranks);
    require(slice.weights.bytes() < whole.weights.bytes(), name, ": a rank has all weights");
    require(slice.config.n_head * ranks.size() == config.n_head, name, ": a rank's heads");
    const std::vector<float> expected = all_logits(device.ctx(), whole),
                             found = all_logits(device.ctx(), slice);
    require(found.size() == expected.size(), name, ": ", found.size(), " logits");
    float largest = 0;
    for (const float x : expected) largest = std::max(largest, std::abs(x));
    int64_t others = 0;
    size_t worst = 0;
    const auto error = [&](size_t i) { return std::abs(found[i] - expected[i]); };
    for (size_t i = 0; i < found.size(); ++i) {
        others += error(i) > share * largest;
        if (error(i) > error(worst)) worst = i;
    }
    require(others == 0, name, " in ", dtype, ", ", ranks.size(), " ranks: ", others, " of ",
            found.size(), " logits are off, most of all ", worst, ": expected ", expected[worst],
            ", found ", found[worst], "; the largest is ", largest);
    std::vector<float> first = found;
    ranks.share(std::as_writable_bytes(std::span(first)), 0);
    require(std::memcmp(first.data(), found.data(), first.size() * sizeof(float)) == 0, name,
            ": other bits than the first rank's");
}

// The tokens of an engine's texts: greedy and drawn ones, prompts that share beginnings.
std::map<int64_t, std::vector<int32_t>> engine_texts(Context& ctx, const Model& model,
                                                     int64_t draft_tokens) {
    Engine engine(ctx, model, model.config.n_vocab,
                  {.max_sequences = 5,
                   .context = kEngineContext,
                   .pool_tokens = 512,
                   .draft_tokens = draft_tokens});
    std::map<int64_t, std::vector<int32_t>> tokens;
    const std::map<int64_t, hark::gpt::Text> texts =
        texts_of(engine, shuffled(12, 3), model.config.n_vocab, {.shared = 33});
    for (const auto& [number, text] : texts) tokens[number] = text.tokens;
    return tokens;
}

std::vector<int32_t> stream_text(Context& ctx, const Model& model, double temperature) {
    const auto stream = make_decode_stream(ctx, model, model.config.n_vocab,
                                           {.temperature = temperature}, kEngineContext);
    std::vector<int32_t> tokens;
    stream->begin(prompt_of(21, model.config.n_vocab), 5, 40, false);
    for (int i = 0; i < 40; ++i) tokens.push_back(stream->next().token);
    return tokens;
}

void check_texts(TestDevice& device, const std::string& name, Communicator& ranks) {
    const DecoderConfig config = config_of(name);
    Context& ctx = device.ctx();
    const Model whole = model_of(device, name, config, "f32", no_other_ranks()),
                slice = model_of(device, name, config, "f32", ranks);
    for (const double temperature : {0.0, 1.0})
        require(stream_text(ctx, slice, temperature) == stream_text(ctx, whole, temperature), name,
                ": another text, temperature ", temperature);
    if (config.has_longrope()) return;
    for (const int64_t drafts : {0, 3})
        require(engine_texts(ctx, slice, drafts) == engine_texts(ctx, whole, drafts), name,
                ": the engine has other texts, drafts ", drafts);
}

// The same of a model in a file, on the CPU.
void check_file(TestDevice& device, const std::filesystem::path& path, Communicator& ranks) {
    Context& ctx = device.ctx();
    const Precision precision = precision_of("f16");
    const std::shared_ptr<ModelFile> file = open_model(path);
    const std::vector<float> expected = all_logits(ctx, read_model(file, precision)),
                             found = all_logits(
                                 ctx, read_model(file, precision, cpu_memory(), 1, ranks));
    float largest = 0;
    for (const float x : expected) largest = std::max(largest, std::abs(x));
    for (size_t i = 0; i < found.size(); ++i)
        require(std::abs(found[i] - expected[i]) <= 2e-5f * largest, path.string(), ", logit ", i,
                ": expected ", expected[i], ", found ", found[i]);
}

bool has_two_gpus() {
    struct stat found {};
    return ::stat("/dev/nvidia1", &found) == 0;
}

constexpr DeviceCase kOneThread = {"cpu", Device::cpu, Dtype::f32, 0, 1};

}  // namespace

class TensorParallel : public testing::TestWithParam<int> {
  protected:
    template <class Check>
    void for_families(const Check& check) const {
        in_ranks(GetParam(), [&](std::unique_ptr<Transport> links) {
            TestDevice device(kOneThread);
            const std::unique_ptr<Communicator> ranks =
                make_communicator(device.ctx(), std::move(links));
            for (const std::string& name : shared_families())
                // Experts of 64 channels in blocks of 32.
                if (GetParam() == 2 || name != "gpt_oss, mxfp4") check(device, name, *ranks);
            ranks->finish();
        });
    }
};

TEST_P(TensorParallel, LogitsAreTheWholeModels) {
    for_families([](TestDevice& device, const std::string& name, Communicator& ranks) {
        check_logits(device, name, ranks, "f32", 2e-5f);
        check_logits(device, name, ranks, "auto", 1e-3f);
    });
}

TEST_P(TensorParallel, TextsAreTheWholeModels) {
    for_families([](TestDevice& device, const std::string& name, Communicator& ranks) {
        check_texts(device, name, ranks);
    });
}
INSTANTIATE_TEST_SUITE_P(Ranks, TensorParallel, testing::Values(2, 4));

// Heads whose matrices are tensors of their own, and heads that one tensor has.
TEST_P(TensorParallel, FilesAreTheWholeModels) {
    in_ranks(GetParam(), [](std::unique_ptr<Transport> links) {
        TestDevice device(kOneThread);
        const std::unique_ptr<Communicator> ranks =
            make_communicator(device.ctx(), std::move(links));
        const std::filesystem::path files = source_dir() / "tests/golden/model_files/deepseek";
        for (const char* name : {"v2-older.gguf", "v2.gguf", "v3.gguf"})
            if (ranks->size() == 2) check_file(device, files / name, *ranks);  // of two heads
        check_file(device, source_dir() / "models/gpt-demo", *ranks);
        ranks->finish();
    });
}

// Two GPUs in f32 have the text of one, and in 16 bits, without experts, logits that are near.
TEST(TensorParallel, TwoGpusAreOne) {
    if (!has_two_gpus()) GTEST_SKIP() << "needs two GPUs";
    in_ranks(2, [](std::unique_ptr<Transport> links) {
        TestDevice device({"cuda", Device::cuda}, links->local_rank());
        require(static_cast<bool>(device), device.why_not());
        const std::unique_ptr<Communicator> ranks =
            make_communicator(device.ctx(), std::move(links));
        for (const std::string& name : shared_families()) {
            check_logits(device, name, *ranks, "f32", 1e-4f);
            // Sums that are rounded in another way may choose another expert for a row.
            if (config_of(name).experts.count == 0) {
                check_logits(device, name, *ranks, "bf16", 4e-2f);
                check_logits(device, name, *ranks, "f16", 1e-2f);
            }
            check_texts(device, name, *ranks);
        }
        ranks->finish();
    });
}

TEST(SlicedConfig, NamesWhatRanksDoNotDivide) {
    const auto error = [](const std::string& name, int64_t ranks) {
        return error_of(
            [&] { sliced_config(parse_config(family_config(name).dump(), name), ranks); });
    };
    expect_contains(error("llama", 3),
                    "3 processes cannot share the model: expected a divisor of "
                    "its attention heads, 4, got 3");
    expect_contains(error("olmo2", 2), "norms over the queries of all heads");
    DecoderConfig config = parse_config(family_config("llama").dump(), "llama");
    config.n_head = 12, config.n_kv_head = 6;
    expect_contains(error_of([&] { sliced_config(config, 4); }),
                    "a divisor of its heads of keys and values, 6, got 4");
    config.n_kv_head = 2;
    EXPECT_EQ(sliced_config(config, 4).n_kv_head, 1);
    EXPECT_EQ(sliced_config(config, 4).n_head, 3);
    config.n_inner = 90;
    expect_contains(error_of([&] { sliced_config(config, 4); }),
                    "a divisor of its MLPs' channels, 90, got 4");
}

TEST(SlicedTensors, ColumnsKeepBlocksWhole) {
    const DecoderConfig config = parse_config(family_config("gpt_oss, mxfp4").dump(), "gpt_oss");
    FamilyModel weights("gpt_oss, mxfp4", config);
    SlicedTensors slices(weights.source(), config, {1, 4});
    const auto down = [](const TensorSpec& spec) { return spec.part == Part::expert_down; };
    for (const TensorSpec& spec : tensor_specs(slices.config()))
        if (down(spec)) {
            expect_contains(error_of([&] { take(slices, spec); }),
                            "expected slices of whole blocks of 32 values of mxfp4, found 16 "
                            "columns for each of 4 processes");
            break;
        }
}

TEST(TokensOf, CoverTheVocabularyFromAlignedRowsOn) {
    for (const int64_t vocabulary : {127, 128, 50257})
        for (const int64_t ranks : {1, 2, 3, 4, 8}) {
            int64_t end = 0;
            for (int64_t rank = 0; rank < ranks; ++rank) {
                const Range own = tokens_of(vocabulary, {rank, ranks});
                EXPECT_EQ(own.begin, end);
                EXPECT_EQ(own.begin % 16, 0);
                EXPECT_TRUE(rank == 0 || own.size() <= tokens_of(vocabulary, {0, ranks}).size());
                end = own.end;
            }
            EXPECT_EQ(end, vocabulary);
        }
    DecoderConfig config = parse_config(family_config("llama").dump(), "llama");
    config.n_vocab = 40;
    expect_contains(error_of([&] { sliced_config(config, 4); }), "its 40 tokens are too few");
}
