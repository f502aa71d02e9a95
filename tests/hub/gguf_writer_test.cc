// Language models as GGUF files, read back by the reader. tests/golden/gguf_peers.py has llama.cpp
// read them.
#include "hub/gguf_writer.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "gpt/families/gguf_model.h"
#include "hub/gguf_fixture.h"
#include "hub/tensor_list.h"
#include "hub/tiny_configs.h"
#include "support/error_of.h"
#include "support/family_folder.h"
#include "text/chat_request.h"

namespace hark::models {
namespace {

namespace fs = std::filesystem;

class GgufWriting : public GgufConversion {
  protected:
    fs::path folder(const char* config, const std::string& tokenizer) {
        const fs::path path = directory_.path() / "folder";
        fs::remove_all(path);
        test::write_tiny_model(path, config, tokenizer);
        return path;
    }
};

// The largest of the tensors' squared differences over their squares.
double difference(gpt::ModelFile& a, gpt::ModelFile& b) {
    double largest = 0;
    for (const ModelTensor& tensor : tensor_list(a.config())) {
        std::vector<float> x = values_of(a.tensors(), tensor);
        const std::vector<float> y = values_of(b.tensors(), tensor);
        double squares = 0, errors = 0;
        // Gemma's norms are stored as 1 + w there.
        const bool is_norm = tensor.shape.size() == 1 && a.config().norm_offset != 0;
        for (size_t i = 0; is_norm && i < x.size(); ++i) x[i] += a.config().norm_offset;
        for (size_t i = 0; i < x.size(); ++i) {
            squares += double{x[i]} * x[i];
            errors += (double{x[i]} - y[i]) * (double{x[i]} - y[i]);
        }
        largest = std::max(largest, errors / squares);
    }
    return largest;
}

TEST_F(GgufWriting, FilesInF32AreTheModel) {
    for (const auto& [config, tokenizer] : {std::pair{kLlama3, "llama3"},
                                            {kLlama2, "llama2"},
                                            {test::kTinyConfig, "qwen2"},
                                            {kYarn, "qwen2"},
                                            {kQwen3, "qwen2"},
                                            {kMistral, "llama3"},
                                            {kOlmo2, "qwen2"},
                                            {kGranite, "llama3"},
                                            {kSmolLm3, "llama3"},
                                            {kLlama2, "deepseek_llm"},
                                            {kGemma2, "gemma"},
                                            {kGemma3, "gemma"},
                                            {kPhi3, "phi3"}}) {
        SCOPED_TRACE(config);
        const fs::path from = folder(config, tokenizer);
        const auto original = gpt::open_model(from);
        const auto found = gpt::open_model(written(from, "f32"));
        EXPECT_STREQ(found->format(), "GGUF");
        EXPECT_EQ(difference(*original, *found), 0);
        const gpt::DecoderConfig &a = original->config(), &b = found->config();
        EXPECT_EQ(a.n_positions, b.n_positions);
        EXPECT_EQ(a.n_kv_head, b.n_kv_head);
        EXPECT_EQ(a.norm_eps, b.norm_eps);
        EXPECT_EQ(a.tie_word_embeddings, b.tie_word_embeddings);
        EXPECT_EQ(a.embedding_scale, b.embedding_scale);
        EXPECT_EQ(a.attention_scale, b.attention_scale);
        EXPECT_EQ(a.residual_scale, b.residual_scale);
        EXPECT_EQ(a.logit_scale, b.logit_scale);
        EXPECT_EQ(a.attention_soft_cap, b.attention_soft_cap);
        EXPECT_EQ(a.logit_soft_cap, b.logit_soft_cap);
        for (size_t i = 0; i < a.layers.size(); ++i) {
            EXPECT_EQ(a.layers[i].rope, b.layers[i].rope) << "layer " << i;
            const bool slides = a.layers[i].window < a.n_positions;
            EXPECT_EQ(slides ? a.layers[i].window : 0, b.layers[i].window) << "layer " << i;
        }
        ASSERT_EQ(a.ropes.size(), b.ropes.size());
        for (size_t rope = 0; rope < a.ropes.size(); ++rope) {
            const std::vector<float>&x = a.ropes[rope].frequencies, &y = b.ropes[rope].frequencies;
            EXPECT_EQ(a.ropes[rope].scale, b.ropes[rope].scale);
            ASSERT_EQ(x.size(), y.size());
            for (size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(y[i] / x[i], 1, 1e-6);
        }
        const auto x = original->tokenizer(), y = found->tokenizer();
        for (const std::string text :
             {"Hello, world! 1984 caf\xC3\xA9  \n\n\xE4\xB8\x80 don't", "<|im_end|>", " x "}) {
            EXPECT_EQ(x->encode(text, {true, true}), y->encode(text, {true, true})) << text;
            EXPECT_EQ(y->decode(x->encode(text)), x->decode(x->encode(text))) << text;
        }
        EXPECT_EQ(x->special_ids().eos, y->special_ids().eos);
        ASSERT_TRUE(found->chat_template());
        ChatRequest request;
        request.messages = {{{"role", "user"}, {"content", "Hello"}}};
        EXPECT_EQ(joined(found->chat_template()->render(request)),
                  joined(original->chat_template()->render(request)));
    }
}

// The bounds are the types' own mean squared errors for uniform numbers, and some more.
TEST_F(GgufWriting, OtherTypesAreWithinTheirRounding) {
    const fs::path from = folder(kLlama3, "llama3");
    const auto original = gpt::open_model(from);
    for (const auto& [type, most] : {std::pair{"f16", 1e-6},
                                     {"bf16", 1e-5},
                                     {"q8_0", 4e-5},
                                     {"q6_k", 4e-4},
                                     {"q5_k_m", 2e-3},
                                     {"q4_k_m", 7e-3},
                                     {"q4_0", 1e-2},
                                     {"iq4_xs", 1e-2},
                                     {"mxfp4", 2e-2},
                                     {"q2_k", 1e-1}}) {
        const double found = difference(*original, *gpt::open_model(written(from, type)));
        EXPECT_LT(found, most) << type;
        EXPECT_GT(found, most / 100) << type;
    }
}

TEST_F(GgufWriting, WhatIsNotWrittenIsNamed) {
    const auto why = [&](const char* config, const char* tokenizer) {
        const fs::path from = folder(config, tokenizer);
        return test::error_of([&] { written(from, "q8_0"); });
    };
    EXPECT_NE(why(kOlmo3, "qwen2").find("found olmo3"), std::string::npos);
    EXPECT_NE(why(kOtherScalar, "gemma").find("no place for this query_pre_attn_scalar"),
              std::string::npos);
    EXPECT_NE(why(kWindows, "qwen2").find("GGUF cannot say that layer 1 has a window"),
              std::string::npos);
    EXPECT_NE(why(kOtherRopes, "llama3").find("layer 1 has no positions"), std::string::npos);
    EXPECT_NE(why(kYarnFactor, "qwen2").find("no place for yarn's attention_factor"),
              std::string::npos);
    EXPECT_NE(why(kYarnGemma, "gemma").find("the rope's scaling yarn is not written"),
              std::string::npos);
    EXPECT_NE(why(kLlama2, "unigram").find("expected a tokenizer of the type BPE, found Unigram"),
              std::string::npos);
    EXPECT_NE(why(kLlama2, "odd_contiguous").find("the pre-tokenizer Split has no place"),
              std::string::npos);
    const fs::path from = folder(kLlama2, "llama2");
    EXPECT_THROW(written(from, "q4_k_l"), UsageError);
    const fs::path gguf = written(from, "f16");
    EXPECT_NE(test::error_of([&] { written(gguf, "q8_0"); }).find("from Hugging Face's folders"),
              std::string::npos);
    EXPECT_FALSE(fs::exists(directory_.path() / "q8_0.gguf"));
}

}  // namespace
}  // namespace hark::models
