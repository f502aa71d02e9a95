// The types that a mixture gives to tensors.
#include "gpt/families/gguf_types.h"

#include <gtest/gtest.h>

#include <utility>

namespace hark::gpt {
namespace {

Dtype gguf_dtype(Part part, int64_t layer, int64_t columns, const std::string& type,
                 bool tied = false) {
    DecoderConfig config;
    config.n_layer = 32;
    config.tie_word_embeddings = tied;
    return gguf_type_of({.part = part, .layer = layer, .rows = 512, .columns = columns}, config,
                        type);
}

// The mixtures as llama.cpp's llama-quantize makes them; q4_k is that type alone.
TEST(GgufTypes, MixturesGiveSomeTensorsMoreBits) {
    for (const Part part : {Part::v, Part::down})
        for (int64_t layer = 0; layer < 32; ++layer) {
            const bool more = layer < 4 || layer >= 28 || layer % 3 == 0;
            EXPECT_EQ(gguf_dtype(part, layer, 512, "q4_k_m"), more ? Dtype::q6_k : Dtype::q4_k);
            EXPECT_EQ(gguf_dtype(part, layer, 512, "q5_k_m"), more ? Dtype::q6_k : Dtype::q5_k);
            EXPECT_EQ(gguf_dtype(part, layer, 512, "q4_k"), Dtype::q4_k);
        }
    EXPECT_EQ(gguf_dtype(Part::q, 0, 512, "q4_k_m"), Dtype::q4_k);
    EXPECT_EQ(gguf_dtype(Part::qkv, 9, 512, "q4_k_m"), Dtype::q5_k);
    EXPECT_EQ(gguf_dtype(Part::lm_head, -1, 512, "q4_k_m"), Dtype::q6_k);
    EXPECT_EQ(gguf_dtype(Part::lm_head, -1, 512, "q8_0"), Dtype::q8_0);
    EXPECT_EQ(gguf_dtype(Part::token_table, -1, 512, "q4_0"), Dtype::q4_0);
    EXPECT_EQ(gguf_dtype(Part::token_table, -1, 512, "q4_0", true), Dtype::q6_k);
    EXPECT_EQ(gguf_dtype(Part::attn_norm, 0, 0, "q4_0"), Dtype::f32);
}

// With eight experts llama-quantize gives more bits to what all tokens use.
TEST(GgufTypes, ExpertsAreTheMatricesOfAnMlp) {
    for (const int64_t experts : {4, 8, 128}) {
        DecoderConfig config;
        config.n_layer = 8;
        config.experts.count = experts;
        const auto dtype = [&](Part part, int64_t layer, const char* type) {
            return gguf_type_of({.part = part, .layer = layer, .rows = 512, .columns = 512}, config,
                                type);
        };
        for (const Part part : {Part::expert_down, Part::shared_down}) {
            EXPECT_EQ(dtype(part, 0, "q4_k_m"), Dtype::q6_k);
            EXPECT_EQ(dtype(part, 1, "q4_k_m"), Dtype::q4_k);
            EXPECT_EQ(dtype(part, 0, "q4_0"), Dtype::q4_0);
        }
        EXPECT_EQ(dtype(Part::expert_gate, 0, "q4_k_m"), Dtype::q4_k);
        for (const char* type : {"f16", "q8_0", "q4_k_m"})
            EXPECT_EQ(dtype(Part::router, 0, type), Dtype::f32);
        const bool few = experts == 8;
        EXPECT_EQ(dtype(Part::k, 0, "q4_k_m"), few ? Dtype::q8_0 : Dtype::q4_k);
        EXPECT_EQ(dtype(Part::v, 0, "q5_k_m"), few ? Dtype::q8_0 : Dtype::q6_k);
        EXPECT_EQ(dtype(Part::v, 1, "q4_0"), few ? Dtype::q8_0 : Dtype::q4_0);
        EXPECT_EQ(dtype(Part::attn_out, 0, "q4_k_m"), few ? Dtype::q5_k : Dtype::q4_k);
        EXPECT_EQ(dtype(Part::attn_out, 0, "q5_k_m"), Dtype::q5_k);
        EXPECT_EQ(dtype(Part::q, 0, "q4_k_m"), Dtype::q4_k);
    }
}

TEST(GgufTypes, RowsThatAreNoWholeBlocksGetSmallerOnes) {
    for (const auto& [type, smaller] : {std::pair{"q4_k_m", Dtype::q5_0},
                                        {"q5_k_m", Dtype::q5_1},
                                        {"q6_k", Dtype::q8_0},
                                        {"q2_k", Dtype::q4_0},
                                        {"iq4_xs", Dtype::iq4_nl},
                                        {"q4_0", Dtype::q4_0}}) {
        EXPECT_EQ(gguf_dtype(Part::q, 0, 96, type), smaller) << type;
        EXPECT_EQ(gguf_dtype(Part::q, 0, 40, type), Dtype::f16) << type;
    }
    EXPECT_EQ(gguf_dtype(Part::lm_head, -1, 96, "q4_k_m"), Dtype::q8_0);
}

}  // namespace
}  // namespace hark::gpt
