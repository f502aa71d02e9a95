// The model against transformers (tests/gpt_model_golden/gpt.py), and its ways to be stored.
#include "gpt/decoder/model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <numeric>
#include <tuple>

#include "core/error.h"
#include "core/files/files.h"
#include "core/json/json.h"
#include "formats/tensor_stream.h"
#include "gpt/answers/generate.h"
#include "gpt/engine/sequence.h"
#include "kernels/batch_layout.h"
#include "kernels/sampling/distribution.h"
#include "support/error_of.h"
#include "support/golden.h"
#include "support/process.h"

using namespace hark;
using nlohmann::json;

namespace {

const json& gpt_model_golden() {
    static const json kGolden = test::golden("gpt.json");
    return kGolden;
}

std::vector<int32_t> counting(size_t n) {
    std::vector<int32_t> numbers(n);
    std::iota(numbers.begin(), numbers.end(), 0);
    return numbers;
}

Tensor view(std::vector<int32_t>& ids) {
    return Tensor(ids.data(), Dtype::i32, {static_cast<int64_t>(ids.size())});
}

// The logits of packed sequences at the packed rows `wanted`, each (n_vocab).
std::vector<std::vector<float>> gpt_model_logits_of(
    const gpt::Model& model, const std::vector<std::vector<int32_t>>& sequences,
    std::vector<int32_t> wanted) {
    Context ctx = make_cpu_context(1);
    KvCacheShape shape =
        gpt::cache_shape(model.config, model.precision.cache, model.config.n_positions);
    shape.sequences = std::ssize(sequences);
    shape.block = kBlockTokens;
    KvCache cache(shape, cpu_memory());
    std::vector<int32_t> tokens, position;
    HostBatchLayout rows;
    for (size_t i = 0; i < sequences.size(); ++i) {
        const auto n = static_cast<int64_t>(sequences[i].size());
        rows.add(static_cast<int64_t>(i), n, n);
        tokens.insert(tokens.end(), sequences[i].begin(), sequences[i].end());
        const std::vector<int32_t> places = counting(sequences[i].size());
        position.insert(position.end(), places.begin(), places.end());
    }
    const Tensor logits =
        model(ctx, view(tokens), view(position), cache.layouts(ctx, rows), view(wanted), cache);
    std::vector<std::vector<float>> result;
    for (int64_t i = 0; i < logits.dim(0); ++i) {
        const float* row = logits.slice(i, i + 1).as<float>();
        result.emplace_back(row, row + logits.dim(1));
    }
    return result;
}

double largest_difference(const std::vector<float>& logits, const json& reference) {
    double largest = 0;
    const auto compare = [&](const json& ids, const json& values) {
        for (size_t i = 0; i < ids.size(); ++i)
            largest =
                std::max(largest, std::abs(logits[ids[i].get<size_t>()] - values[i].get<double>()));
    };
    compare(reference["top_ids"], reference["top"]);
    compare(gpt_model_golden()["listed_ids"], reference["listed"]);
    return largest;
}

class GptDemo : public testing::TestWithParam<const char*> {};

}  // namespace

TEST_P(GptDemo, LogitsEqualTransformers) {
    const gpt::Model model = gpt::load_model(test::gpt_demo(), precision_of(GetParam()));
    double largest = 0;
    for (const json& item : gpt_model_golden()["cases"]) {
        const auto ids = item["ids"].get<std::vector<int32_t>>();
        const auto logits = gpt_model_logits_of(
            model, {ids}, {item["middle"].get<int32_t>(), static_cast<int32_t>(ids.size()) - 1});
        largest = std::max({largest, largest_difference(logits[0], item["at_middle"]),
                            largest_difference(logits[1], item["at_last"])});
    }
    std::printf("largest difference %.2e\n", largest);
    EXPECT_LT(largest, 1e-3);
    EXPECT_EQ(gpt_model_golden()["cases"].size(), 20u);
}

TEST_P(GptDemo, GreedyTokensEqualTransformers) {
    const gpt::Model model = gpt::load_model(test::gpt_demo(), precision_of(GetParam()));
    Context ctx = make_cpu_context(1);
    gpt::Sequence sequence(ctx, model);
    // The weights as they are stored have the values of those in f32: a quarter of the texts.
    const bool is_f32 = GetParam() == std::string("f32");
    const json& cases = gpt_model_golden()["cases"];
    for (size_t i = 0; i < cases.size(); i += is_f32 ? 1 : 4) {
        const json& item = cases[i];
        std::vector<int32_t> fresh = item["ids"], tokens;
        sequence.clear();
        while (tokens.size() < 200) {
            fresh = {argmax(sequence.forward_to_host(ctx, fresh))};
            tokens.push_back(fresh[0]);
        }
        EXPECT_EQ(tokens, item["tokens"].get<std::vector<int32_t>>()) << item["prompt"];
    }
}

// Both compute the reference's text: in f32, and on the weights as they are stored.
INSTANTIATE_TEST_SUITE_P(Dtypes, GptDemo, testing::Values("f32", "auto"));

// The types for speed stay near; how near says whether their weights were read rightly.
TEST(GptModel, SmallerWeightsStayNear) {
    const json& item = gpt_model_golden()["cases"][19];
    const auto ids = item["ids"].get<std::vector<int32_t>>();
    const int32_t last = static_cast<int32_t>(ids.size()) - 1;
    for (const auto& [dtype, tolerance] :
         {std::tuple{"f16", 0.005}, std::tuple{"bf16", 0.1}, std::tuple{"int8", 0.3}}) {
        const gpt::Model model = gpt::load_model(test::gpt_demo(), precision_of(dtype));
        const auto logits = gpt_model_logits_of(model, {ids}, {last});
        const double difference = largest_difference(logits[0], item["at_last"]);
        std::printf("%s: %.4f\n", dtype, difference);
        EXPECT_LT(difference, tolerance) << dtype;
    }
}

// Prompts packed together, and a prompt fed in pieces, give what each gives alone.
TEST(GptModel, PackedRowsAndPiecesEqualOneSequence) {
    const gpt::Model model = gpt::load_model(test::gpt_demo(), precision_of("auto"));
    std::vector<std::vector<int32_t>> sequences;
    std::vector<int32_t> wanted;
    int32_t row = -1;
    for (int i : {19, 3, 5}) {
        sequences.push_back(gpt_model_golden()["cases"][i]["ids"]);
        row += static_cast<int32_t>(sequences.back().size());
        wanted.push_back(row);
    }
    const auto packed = gpt_model_logits_of(model, sequences, wanted);
    Context ctx = make_cpu_context(1);
    gpt::Sequence sequence(ctx, model);
    for (size_t i = 0; i < sequences.size(); ++i) {
        sequence.clear();
        const std::span<const int32_t> ids = sequences[i];
        const size_t cut = ids.size() / 2;
        if (cut > 0) sequence.forward_to_host(ctx, ids.first(cut));
        const std::span<const float> pieces = sequence.forward_to_host(ctx, ids.subspan(cut));
        gpt::Sequence bounded(ctx, model, {.prefill_rows = 5});
        const std::span<const float> fives = bounded.forward_to_host(ctx, ids);
        for (size_t id = 0; id < pieces.size(); ++id) {
            ASSERT_NEAR(packed[i][id], pieces[id], 1e-4) << i << " " << id;
            ASSERT_NEAR(packed[i][id], fives[id], 1e-4) << i << " " << id;
        }
    }
}

TEST(GptModel, SequenceRefusesMoreThanItsContext) {
    const gpt::Model model = gpt::load_model(test::gpt_demo(), precision_of("auto"));
    Context ctx = make_cpu_context(1);
    const std::vector<int32_t> ids(512, 7);
    for (const int64_t context : {0, 33}) {
        gpt::Sequence sequence(ctx, model, {.context = context});
        EXPECT_EQ(sequence.context(), context > 0 ? context : 512);
        const std::span<const int32_t> all =
            std::span(ids).first(static_cast<size_t>(sequence.context()));
        EXPECT_THROW(sequence.forward_to_host(ctx, std::vector<int32_t>(all.size() + 1, 7)), Error);
        sequence.forward_to_host(ctx, all);
        EXPECT_EQ(sequence.room(), 0);
        EXPECT_THROW(sequence.forward_to_host(ctx, all.first(1)), Error);
        EXPECT_THROW(sequence.forward_to_host(ctx, {}), Error);
    }
    EXPECT_THROW(gpt::Sequence(ctx, model, {.context = 513}), Error);
}

// Memory of keys and values is taken as the text grows.
TEST(GptModel, ACachesMemoryFollowsTheText) {
    const gpt::Model model = gpt::load_model(test::gpt_demo(), precision_of("auto"));
    Context ctx = make_cpu_context(1);
    gpt::Sequence sequence(ctx, model);
    const std::vector<int32_t> ids(40, 7);
    sequence.forward_to_host(ctx, ids);
    const gpt::DecoderConfig& c = model.config;
    EXPECT_EQ(sequence.cache().bytes(), c.n_layer * 2 * 64 * c.kv_width() * 4);
}

namespace {

// A directory with the gpt_model_demo's config, changed, and its weights renamed or changed.
class Variant {
  public:
    Variant() : config_(json::parse(test::read_text(test::gpt_demo() / "config.json"))) {
        const SafetensorsFile file(test::gpt_demo() / "model.safetensors");
        for (const TensorEntry& entry : file.entries()) {
            const Tensor tensor = file.tensor(entry);
            document_.add(entry.name, tensor);
        }
    }
    json& config() { return config_; }
    std::vector<TensorEntry>& entries() { return document_.header.tensors; }
    TensorEntry& entry(const std::string& name) {
        for (TensorEntry& entry : entries())
            if (entry.name == name) return entry;
        throw std::out_of_range(name);
    }
    void add(const std::string& name, const Tensor& tensor) { document_.add(name, tensor); }
    const Document& document() const { return document_; }

    void write_weights(const std::filesystem::path& path, const Document& document) const {
        AtomicFile file(path);
        ByteWriter out(file.fd(), path.string());
        write_document(out, document);
        out.flush();
        file.commit();
    }
    gpt::Model load() const {
        test::write_text(directory_.path() / "config.json", config_.dump());
        write_weights(directory_.path() / "model.safetensors", document_);
        return gpt::load_model(directory_.path(), precision_of("auto"));
    }
    const std::filesystem::path& path() const { return directory_.path(); }

  private:
    json config_;
    Document document_;
    test::TemporaryDirectory directory_;
};

void expect_demo_logits(const gpt::Model& model) {
    const json& item = gpt_model_golden()["cases"][0];
    const auto ids = item["ids"].get<std::vector<int32_t>>();
    const auto logits = gpt_model_logits_of(model, {ids}, {static_cast<int32_t>(ids.size()) - 1});
    EXPECT_LT(largest_difference(logits[0], item["at_last"]), 1e-3);
}

}  // namespace

TEST(GptCheckpoint, WithoutPrefixAndWithBuffers) {
    Variant variant;
    for (TensorEntry& entry : variant.entries())
        entry.name = entry.name.substr(std::string("transformer.").size());
    std::vector<float> mask(64 * 64, 1.0f);
    variant.add("h.0.attn.bias", Tensor(mask.data(), Dtype::f32, {1, 1, 64, 64}));
    variant.add("h.0.attn.masked_bias", Tensor(mask.data(), Dtype::f32, {1}));
    expect_demo_logits(variant.load());
}

TEST(GptCheckpoint, OutputWeightsOfTheirOwn) {
    Variant variant;
    // Rows of the table times two: the logits double if the head is not tied.
    std::vector<float> head(4096 * 256);
    const gpt::Model tied = gpt::load_model(test::gpt_demo(), precision_of("f32"));
    const float* table = tied.token_table.values.as<float>();
    std::transform(table, table + head.size(), head.begin(), [](float x) { return 2 * x; });
    variant.add("lm_head.weight", Tensor(head.data(), Dtype::f32, {4096, 256}));
    expect_demo_logits(variant.load());  // tied: the file's own head is not looked at
    variant.config()["tie_word_embeddings"] = false;
    const gpt::Model untied = variant.load();
    const auto ids = gpt_model_golden()["cases"][0]["ids"].get<std::vector<int32_t>>();
    const auto one = gpt_model_logits_of(tied, {ids}, {0}),
               two = gpt_model_logits_of(untied, {ids}, {0});
    for (size_t id = 0; id < one[0].size(); ++id)
        ASSERT_NEAR(2 * one[0][id], two[0][id], 1e-3) << id;
}

TEST(GptCheckpoint, Shards) {
    const Variant variant;
    Document first, second;
    json map;
    for (const TensorEntry& entry : variant.document().header.tensors) {
        const bool early = entry.name.find(".h.3.") != std::string::npos;
        (early ? first : second).add(entry.name, variant.document().tensor(entry.name));
        map[entry.name] = early ? "model-1.safetensors" : "model-2.safetensors";
    }
    test::write_text(variant.path() / "config.json",
                     test::read_text(test::gpt_demo() / "config.json"));
    test::write_text(variant.path() / "model.safetensors.index.json",
                     json{{"weight_map", map}}.dump());
    variant.write_weights(variant.path() / "model-1.safetensors", first);
    variant.write_weights(variant.path() / "model-2.safetensors", second);
    expect_demo_logits(gpt::load_model(variant.path(), precision_of("auto")));
}

TEST(GptCheckpoint, SaysWhatIsWrong) {
    const auto expect_message = [](const std::function<void(Variant&)>& change,
                                   const std::vector<std::string>& parts) {
        Variant variant;
        change(variant);
        const std::string message = test::error_of([&] { variant.load(); });
        for (const std::string& part : parts)
            EXPECT_NE(message.find(part), std::string::npos)
                << "'" << part << "' is not in: " << message;
    };
    expect_message([](Variant& v) { v.entry("transformer.h.2.ln_1.bias").name = "other"; },
                   {"model.safetensors", "h.2.ln_1.bias", "found none"});
    expect_message(
        [](Variant& v) {
            v.entry("transformer.h.0.attn.c_attn.weight").shape = {768, 256};
        },
        {"h.0.attn.c_attn.weight", "expected f16 (256, 768)", "found f16 (768, 256)"});
    expect_message([](Variant& v) { v.config()["n_positions"] = 1024; },
                   {"wpe.weight", "(1024, 256)", "(512, 256)"});
    expect_message([](Variant& v) { v.config()["tie_word_embeddings"] = false; },
                   {"lm_head.weight", "found none"});
    expect_message([](Variant& v) { v.config()["n_layer"] = 9; }, {"h.8.ln_1", "found none"});
}
