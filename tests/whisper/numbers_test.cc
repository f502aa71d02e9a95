// Encoder, decoder and language detection on the demo model against openai-whisper, and models of
// official shapes whose weights both sides fill by a formula.
// Golden: tests/golden/whisper_numbers.py, tests/golden/official_shapes.py.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/files/files.h"
#include "formats/tensor_source.h"
#include "kernels/batch_layout.h"
#include "support/formula_weights.h"
#include "whisper/support.h"
#include "whisper/transcribe/decoding.h"

namespace hark::test {
namespace {

using namespace hark::whisper;
using nlohmann::json;

struct Outputs {
    std::vector<float> encoder_out;  // (1500, C)
    std::vector<float> logits;       // (tokens, n_vocab)
};

Outputs outputs_of(const Model& model, const MelRecording& mel, std::vector<int32_t> tokens) {
    Context ctx = make_cpu_context(1);
    const Config& c = model.config;
    Tensor window = ctx.arena.tensor(Dtype::f32, {1, kWindowFrames, c.n_mels});
    mel.window(0, std::min(mel.content_frames(), kWindowFrames),
               {window.as<float>(), static_cast<size_t>(window.size())});
    const Tensor encoder_out = model.encoder(ctx, window);
    const int64_t n = static_cast<int64_t>(tokens.size());
    Caches caches(model, 1, 1, CrossKvMode::store, cpu_memory());
    model.decoder.cache_cross_kv(ctx, encoder_out, caches.cross, std::vector<int64_t>{0});
    std::vector<int32_t> index(tokens.size());
    for (size_t i = 0; i < index.size(); ++i) index[i] = static_cast<int32_t>(i);
    HostBatchLayout self, cross;
    self.add(0, n, n);
    cross.add(0, n, c.n_audio_ctx);
    const Tensor all(index.data(), Dtype::i32, {n});
    const Tensor logits =
        model.decoder(ctx, Tensor(tokens.data(), Dtype::i32, {n}), all, self.view(),
                      {caches.cross, cross.view(), {}, {}}, all, caches.self);
    return {{encoder_out.as<float>(), encoder_out.as<float>() + encoder_out.size()},
            {logits.as<float>(), logits.as<float>() + logits.size()}};
}

// Relative to the encoder output's own spread.
void expect_encoder_out(const json& golden, const std::vector<float>& encoder_out, int64_t channels,
                        double tolerance) {
    double norm = 0;
    for (float x : encoder_out) norm += static_cast<double>(x) * x;
    norm = std::sqrt(norm);
    EXPECT_NEAR(norm, golden["norm"].get<double>(), tolerance * norm);
    const double spread = norm / std::sqrt(static_cast<double>(encoder_out.size()));
    for (const json& at : golden["positions"])
        EXPECT_NEAR(
            encoder_out[at[0].get<size_t>() * static_cast<size_t>(channels) + at[1].get<size_t>()],
            at[2].get<double>(), tolerance * spread);
}

void expect_logits(const json& positions, const json& listed, const std::vector<float>& logits,
                   size_t n_vocab, double tolerance) {
    for (size_t i = 0; i < positions.size(); ++i) {
        const float* row = logits.data() + i * n_vocab;
        for (const json& top : positions[i]["top"])
            EXPECT_NEAR(row[top[0].get<size_t>()], top[1].get<double>(), tolerance);
        for (size_t k = 0; k < listed.size(); ++k)
            EXPECT_NEAR(row[listed[k].get<size_t>()], positions[i]["values"][k].get<double>(),
                        tolerance);
    }
}

TEST(Numbers, DemoModelEqualsReference) {
    const json all = golden("whisper_numbers.json");
    for (const char* dtype : {"f32", "auto"}) {
        const Model model = load_model(whisper_demo(), precision_of(dtype));
        for (const json& entry : all["recordings"]) {
            const Outputs out = outputs_of(model, mel_of(samples_of(entry)),
                                           entry["decoder"]["tokens"].get<std::vector<int32_t>>());
            expect_encoder_out(entry["encoder"], out.encoder_out, model.config.n_audio_state, 1e-3);
            expect_logits(entry["decoder"]["positions"], entry["decoder"]["listed"], out.logits,
                          static_cast<size_t>(model.config.n_vocab), 1e-3);
        }
    }
}

TEST(Numbers, LanguageProbabilitiesEqualReference) {
    const json all = golden("whisper_numbers.json");
    Context ctx = make_cpu_context(1);
    const Model model = load_model(whisper_demo(), precision_of("f32"));
    const Tokenizer tokenizer(whisper_demo(), model.config.n_vocab);
    WindowDecoder decoder(ctx, model, tokenizer, {}, 1);
    for (const json& entry : all["recordings"]) {
        Tensor window = ctx.arena.tensor(Dtype::f32, {1, kWindowFrames, 80});
        mel_of(samples_of(entry))
            .detection_window(0, {window.as<float>(), static_cast<size_t>(window.size())});
        decoder.encode(std::vector<int64_t>{0}, window);
        const auto ours = decoder.language_probabilities(0);
        for (const auto& [code, probability] : entry["languages"].items())
            EXPECT_NEAR(ours.at(code), probability.get<double>(), 1e-4) << code;
    }
}

TEST(Numbers, ReducedPrecisionStaysNear) {
    const json entry = golden("whisper_numbers.json")["recordings"][0];
    const MelRecording mel = mel_of(samples_of(entry));
    const auto tokens = entry["decoder"]["tokens"].get<std::vector<int32_t>>();
    const std::vector<float> exact =
        outputs_of(load_model(whisper_demo(), precision_of("f32")), mel, tokens).logits;
    for (const auto& [dtype, tolerance] :
         std::map<std::string, double>{{"f16", 0.02}, {"bf16", 0.05}, {"int8", 0.1}}) {
        const std::vector<float> ours =
            outputs_of(load_model(whisper_demo(), precision_of(dtype)), mel, tokens).logits;
        double error = 0, size = 0;
        for (size_t i = 0; i < exact.size(); ++i) {
            error += (ours[i] - exact[i]) * (ours[i] - exact[i]);
            size += exact[i] * exact[i];
        }
        EXPECT_LT(std::sqrt(error / size), tolerance) << dtype;
        EXPECT_GT(error, 0) << dtype << ": as exact as f32, so the precision was not taken";
    }
}

// A Hugging Face directory of a shape, filled by the formula.
void write_formula_model(const std::filesystem::path& directory, const json& shape) {
    const int64_t d = shape["d_model"], heads = shape["heads"];
    const json config = {{"model_type", "whisper"},
                         {"num_mel_bins", shape["n_mels"]},
                         {"max_source_positions", 1500},
                         {"d_model", d},
                         {"encoder_attention_heads", heads},
                         {"decoder_attention_heads", heads},
                         {"encoder_layers", shape["encoder_layers"]},
                         {"decoder_layers", shape["decoder_layers"]},
                         {"encoder_ffn_dim", 4 * d},
                         {"decoder_ffn_dim", 4 * d},
                         {"vocab_size", shape["n_vocab"]},
                         {"max_target_positions", 448}};
    write_text(directory / "config.json", config.dump());
    Document document;
    for (const FormulaTensor& tensor :
         whisper_layout(d, shape["n_mels"], shape["n_vocab"], shape["encoder_layers"],
                        shape["decoder_layers"])) {
        std::vector<float> values = formula_tensor(tensor);
        Tensor view(values.data(), Dtype::f32, {});
        view.rank = static_cast<int>(tensor.shape.size());
        std::copy(tensor.shape.begin(), tensor.shape.end(), view.shape.begin());
        document.add(tensor.name, view);
    }
    AtomicFile file(directory / "model.safetensors");
    ByteWriter out(file.fd(), file.name());
    write_document(out, document);
    out.flush();
    file.commit();
}

class OfficialShape : public testing::TestWithParam<size_t> {};

TEST_P(OfficialShape, FirstWindowEqualsReference) {
    const json all = golden("official_shapes.json");
    const json& shape = all["models"][GetParam()];
    TemporaryDirectory directory;
    write_formula_model(directory.path(), shape);
    const Model model = load_model(directory.path(), precision_of("auto"));
    const Outputs out = outputs_of(model, mel_of(samples_of(all["recording"]), shape["n_mels"]),
                                   shape["tokens"].get<std::vector<int32_t>>());
    expect_encoder_out(shape["encoder"], out.encoder_out, model.config.n_audio_state, 1e-3);
    expect_logits(shape["positions"], shape["listed"], out.logits,
                  static_cast<size_t>(model.config.n_vocab), 1e-3);
}

INSTANTIATE_TEST_SUITE_P(Golden, OfficialShape, testing::Values(0, 1),
                         [](const auto& info) { return info.param == 0 ? "TinyEn" : "LargeV3"; });

}  // namespace
}  // namespace hark::test
