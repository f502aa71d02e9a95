// Quantised folders against the formats' own code and transformers: tests/golden/packed.py.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>

#include "core/error.h"
#include "gpt/decoder/model.h"
#include "gpt/engine/decode_stream.h"
#include "gpt/engine/sequence.h"
#include "gpt/families/model_file.h"
#include "gpt/families/quantization.h"
#include "gpt/families/tensor_spec.h"
#include "kernels/quant/quantize.h"
#include "support/error_of.h"
#include "support/fnv.h"
#include "support/golden.h"
#include "support/ops.h"
#include "support/packed_folder.h"
#include "support/tensor_bytes.h"

namespace hark::gpt {
namespace {

using nlohmann::json;
using test::StoredTensor;

const json& packed_cases() {
    static const json read = test::golden("packed.json");
    return read;
}

std::vector<std::string> packed_names() {
    std::vector<std::string> all;
    for (const auto& [name, of] : packed_cases().items()) all.push_back(name);
    return all;
}

// The tensors of a case, which are made once.
const std::vector<StoredTensor>& stored_tensors_of(const std::string& name) {
    static std::map<std::string, std::vector<StoredTensor>> all;
    const auto [at, is_new] = all.try_emplace(name);
    if (is_new) at->second = test::stored_tensors(packed_cases()[name]);
    return at->second;
}

// The matrix `name` of the golden file's model, from the folder.
Tensor take_matrix(ModelFile& file, const std::string& name) {
    for (const TensorSpec& spec : tensor_specs(file.config()))
        if ("model." + spec.name == name) return take(file.tensors(), spec);
    fail("no matrix ", name);
}

std::string bytes_of(const std::vector<float>& values) {
    return {reinterpret_cast<const char*>(values.data()), 4 * values.size()};
}
// The values that blocks hold.
std::vector<float> values_of_blocks(const Tensor& tensor) {
    std::vector<float> values(static_cast<size_t>(tensor.size()));
    dequantize(values.data(), tensor.data, tensor.dtype, tensor.size());
    return values;
}

class Packed : public testing::TestWithParam<std::string> {
  protected:
    const json& golden() const { return packed_cases()[GetParam()]; }
    std::shared_ptr<ModelFile> packed() const {
        test::write_packed_folder(folder.path() / "packed", golden()["config"],
                                  stored_tensors_of(GetParam()));
        return open_model(folder.path() / "packed");
    }
    // The same model with plain matrices, as `file` has widened them.
    std::shared_ptr<ModelFile> plain(ModelFile& file) const {
        json config = golden()["config"];
        config.erase("quantization_config");
        std::vector<StoredTensor> tensors;
        for (const TensorSpec& spec : tensor_specs(file.config())) {
            const Tensor tensor = take(file.tensors(), spec);
            std::vector<int64_t> shape = {spec.rows};
            if (spec.columns > 0) shape.push_back(spec.columns);
            const bool blocks = is_quantized(tensor.dtype);
            tensors.push_back(
                {spec.name, blocks ? "F32" : safetensors_name(tensor.dtype), shape,
                 blocks ? bytes_of(values_of_blocks(tensor)) : test::bytes_of(tensor)});
        }
        file.tensors().release_tensors();
        test::write_packed_folder(folder.path() / "plain", config, tensors);
        return open_model(folder.path() / "plain");
    }
    // The bytes of the matrix, rounded to its scales' type if it is kept as blocks.
    std::string rounded_bytes(const Tensor& tensor, const std::string& name) const {
        if (!is_quantized(tensor.dtype)) return test::bytes_of(tensor);
        const std::string module = name.substr(0, name.rfind('.'));
        const json& stored = golden()["stored"];
        const std::string scales =
            stored.contains(module + ".scales") ? ".scales" : ".weight_scale";
        const std::string dtype = stored[module + scales]["dtype"];
        std::string bytes;
        for (const float value : values_of_blocks(tensor))
            bytes += test::number_bytes(dtype, value);
        return bytes;
    }
    test::TemporaryDirectory folder;
};

TEST_P(Packed, MatricesEqualTheFormatsOwnCode) {
    const auto file = packed();
    for (const int threads : {1, 3}) {
        file->tensors().use_threads(threads);
        for (const auto& [name, hash] : golden()["widened"].items()) {
            const Tensor found = take_matrix(*file, name);
            EXPECT_EQ(test::fnv1a(rounded_bytes(found, name)), hash.get<std::string>()) << name;
            EXPECT_EQ(is_quantized(found.dtype), golden()["kept"].contains(name)) << name;
            if (is_quantized(found.dtype)) {
                EXPECT_EQ(golden()["kept"][name].get<std::string>(), name_of(found.dtype));
            }
            file->tensors().release_tensors();
        }
    }
    const std::optional<Widening> widening = file->widening();
    ASSERT_TRUE(widening.has_value());
    EXPECT_EQ(widening->kept, std::ssize(golden()["kept"]));
    EXPECT_EQ(widening->kept + widening->widened, std::ssize(golden()["widened"]));
    EXPECT_EQ(name_of(stored_type(*file)),
              std::string(golden()["config"]["dtype"] == "float32"   ? "f32"
                          : golden()["config"]["dtype"] == "float16" ? "f16"
                                                                     : "bf16"));
}

TEST_P(Packed, GreedyTokensEqualTransformers) {
    const Model model = read_model(packed(), precision_of("f32"));
    Context ctx = make_cpu_context(1);
    const std::vector<int32_t> prompt = golden()["prompt"], expected = golden()["greedy"];
    const auto stream =
        make_host_decode_stream(ctx, model, model.config.n_vocab, {.temperature = 0});
    stream->begin(prompt, 0, std::ssize(expected));
    std::vector<int32_t> found;
    for (size_t i = 0; i < expected.size(); ++i) found.push_back(stream->next().token);
    EXPECT_EQ(found, expected);
}

TEST_P(Packed, LogitsEqualThoseOfThePlainModel) {
    const auto file = packed();
    const auto numbers = plain(*file);
    EXPECT_FALSE(numbers->widening().has_value());
    Context ctx = make_cpu_context(1);
    const std::vector<int32_t> prompt = golden()["prompt"];
    for (const char* dtype : {"auto", "f32"}) {
        const Model a = read_model(file, precision_of(dtype), cpu_memory(), 2),
                    b = read_model(numbers, precision_of(dtype), cpu_memory(), 2);
        Sequence first(ctx, a), second(ctx, b);
        const std::span<const float> found = first.forward_to_host(ctx, prompt),
                                     wanted = second.forward_to_host(ctx, prompt);
        // A prompt of at most 16 rows is rounded where it meets blocks.
        const bool rounds = dtype == std::string("auto") && !golden()["kept"].empty();
        if (rounds) {
            EXPECT_LT(a.weights.bytes(), b.weights.bytes());
        }
        float largest = 0;
        for (const float x : wanted) largest = std::max(largest, std::abs(x));
        for (size_t i = 0; i < wanted.size(); ++i)
            ASSERT_NEAR(found[i], wanted[i], rounds ? 1e-3f * largest : 0) << dtype;
    }
}

INSTANTIATE_TEST_SUITE_P(All, Packed, testing::ValuesIn(packed_names()), [](const auto& info) {
    std::string name = info.param;
    std::erase_if(name, [](char c) { return !std::isalnum(c); });
    return name;
});

// "$" is a module of the first layer, (288, 160).
std::string with_module(std::string text) {
    constexpr const char* kModule = "model.layers.0.mlp.up_proj";
    for (size_t at = text.find('$'); at != text.npos; at = text.find('$'))
        text.replace(at, 1, kModule);
    return text;
}

struct BrokenFolder {
    const char *name, *patch, *expected;  // of the golden file; a merge patch of it; the error
};

// What opening and loading the folder throws, after the folder's name.
void expect_errors(const std::vector<BrokenFolder>& folders) {
    for (const auto& [name, patch, expected] : folders) {
        json golden = packed_cases()[name];
        golden.merge_patch(json::parse(with_module(patch)));
        test::TemporaryDirectory folder;
        test::write_packed_folder(folder.path(), golden["config"], test::stored_tensors(golden));
        const std::string error = test::error_of([&] {
            read_model(std::shared_ptr<ModelFile>(open_model(folder.path())), precision_of("f32"));
        });
        EXPECT_EQ(error, folder.path().string() + with_module(expected)) << patch;
    }
}

TEST(PackedErrors, OfCompressedTensorsNameFileAndTensor) {
    constexpr const char *kInt4 = "compressed-tensors, int4 groups",
                         *kZeros = "compressed-tensors, int4 groups, zero points",
                         *kOrder = "compressed-tensors, int4 groups in another order",
                         *kInt8 = "compressed-tensors, int8 rows, zero points",
                         *kTwo = "compressed-tensors, two groups";
    expect_errors({
        {kInt4, R"({"stored": {"$.weight_scale": null}})",
         "/model.safetensors: tensor '$.weight_scale': expected a part of a packed matrix, found "
         "none"},
        {kInt4, R"({"stored": {"$.weight_packed": {"shape": [288, 21]}}})",
         "/model.safetensors: tensor '$.weight_packed': expected I32 (288, 20), found I32 (288, "
         "21)"},
        {kInt4, R"({"stored": {"$.weight_packed": {"dtype": "U8"}}})",
         "/model.safetensors: tensor '$.weight_packed': expected I32 (288, 20), found U8 (288, "
         "20)"},
        {kInt4, R"({"stored": {"$.weight_shape": {"values": [288, 159]}}})",
         "/model.safetensors: tensor '$.weight_shape': expected 288, 160, found 288, 159"},
        {kInt4, R"({"stored": {"$.weight_scale": {"shape": [288, 4]}}})",
         "/model.safetensors: tensor '$.weight_scale': expected 288 x 5 scales, each of 1 rows and "
         "32 columns, found 1152 in 2 dimensions"},
        {kInt4, R"({"stored": {"$.weight_scale": {"dtype": "I8"}}})",
         "/model.safetensors: tensor '$.weight_scale': expected F32, F16 or BF16, found I8"},
        {kZeros, R"({"stored": {"$.weight_zero_point": {"shape": [35, 5]}}})",
         "/model.safetensors: tensor '$.weight_zero_point': expected I32 (36, 5), found I32 (35, "
         "5)"},
        {kOrder, R"({"stored": {"$.weight_g_idx": {"values": null}}})",
         "/model.safetensors: tensor '$.weight_g_idx': expected groups below 5, found 320836513"},
        {kInt8, R"({"stored": {"$.weight_zero_point": {"shape": [287, 1]}}})",
         "/model.safetensors: tensor '$.weight_zero_point': expected I8 and as many as scales, "
         "288, found I8 and 287 bytes"},
        {kTwo, R"({"config": {"quantization_config": {"config_groups": {
             "group_1": {"targets": ["re:.*self_attn"]}}}}})",
         "/model.safetensors: tensor 'model.layers.0.mlp.gate_proj.weight_scale': expected a group "
         "of config_groups that covers the module"},
    });
}

TEST(PackedErrors, OfAwqAndGptqNameFileAndTensor) {
    constexpr const char *kAwq = "awq", *kGptq = "gptq, 4 bits, act-order",
                         *kDynamic = "gptq, 4 and 8 bits", *kRows = "gptq_v2, 4 bits, rows";
    expect_errors({
        {kAwq, R"({"stored": {"$.qzeros": null}})",
         "/model.safetensors: tensor '$.qzeros': expected a part of a packed matrix, found none"},
        {kAwq, R"({"stored": {"$.qweight": {"shape": [160, 35]}}})",
         "/model.safetensors: tensor '$.qweight': expected I32 (160, 36), found I32 (160, 35)"},
        {kAwq, R"({"stored": {"$.scales": {"shape": [4, 288]}}})",
         "/model.safetensors: tensor '$.scales': expected the shape (5, 288), found (4, 288)"},
        {kAwq, R"({"config": {"quantization_config": {"group_size": 48}}})",
         "/model.safetensors: tensor 'model.layers.0.self_attn.q_proj.qweight': expected a matrix "
         "(in, out) of groups of 48 rows and 8 columns per word, found (160, 128)"},
        {kGptq, R"({"stored": {"$.qweight": {"shape": [21, 288]}}})",
         "/model.safetensors: tensor '$.qweight': expected I32 (20, 288), found I32 (21, 288)"},
        {kGptq, R"({"stored": {"$.qzeros": {"shape": [5, 35]}}})",
         "/model.safetensors: tensor '$.qzeros': expected I32 (5, 36), found I32 (5, 35)"},
        {kGptq, R"({"stored": {"$.g_idx": {"values": null}}})",
         "/model.safetensors: tensor '$.g_idx': expected groups below 5, found 684304822"},
        {kGptq, R"({"stored": {"$.scales": {"shape": [5, 287]}}})",
         "/model.safetensors: tensor '$.scales': expected (groups, 288), found another shape"},
        {kDynamic, R"({"stored": {"$.qweight": {"shape": [25, 288]}}})",
         "/model.safetensors: tensor '$.qweight': expected 160 rows of 2, 3, 4 or 8 bits, found 25 "
         "words"},
        {kRows, R"({"config": {"quantization_config": {"group_size": 32}}})",
         "/model.safetensors: tensor 'model.layers.0.self_attn.q_proj.scales': expected 5 groups "
         "of 32 rows, found 1"},
    });
}

TEST(PackedErrors, OfBitsAndBytesNameFileAndTensor) {
    constexpr const char *kNested = "bitsandbytes, nf4, nested", *kFlat = "bitsandbytes, nf4",
                         *kInt8 = "bitsandbytes, int8";
    const std::string state = "$.weight.quant_state.bitsandbytes__nf4";
    const auto with_state = [&](const std::string& text) {
        json values = json::array();
        for (const char c : text) values.push_back(static_cast<int>(c));
        return json({{"stored",
                      {{with_module(state), {{"values", values}, {"shape", {text.size()}}}}}}})
            .dump();
    };
    const std::string small = with_state(R"({"shape": [160, 288]})"),
                      no_type = with_state(R"({"shape": [288, 160], "dtype": "int8"})"),
                      no_block = with_state(R"({"shape": [288, 160], "dtype": "float16",
                                                "blocksize": 0})");
    const std::string place = "/model.safetensors: tensor '" + state + "': ",
                      expect_shape = place + "'shape': expected [288, 160], found [160,288]",
                      expect_type = place +
                                    "'dtype': expected float32, float16 or bfloat16, found "
                                    "\"int8\"",
                      expect_block = place +
                                     "'blocksize': expected a whole number from 1 to 65536, "
                                     "found 0";
    expect_errors({
        {kNested, small.c_str(), expect_shape.c_str()},
        {kNested, no_type.c_str(), expect_type.c_str()},
        {kNested, no_block.c_str(), expect_block.c_str()},
        {kNested, R"({"stored": {"$.weight": {"shape": [23039, 1]}}})",
         "/model.safetensors: tensor '$.weight': expected 23040 bytes for (288, 160), found 23039"},
        {kNested, R"({"stored": {"$.weight.nested_absmax": {"shape": [2]}}})",
         "/model.safetensors: tensor '$.weight.nested_absmax': expected the shape (3), found (2)"},
        {kNested, R"({"stored": {"$.weight.absmax": {"shape": [719]}}})",
         "/model.safetensors: tensor '$.weight.absmax': expected U8 (720), found U8 (719)"},
        {kFlat, R"({"stored": {"model.layers.0.self_attn.q_proj.weight.quant_map": null}})",
         "/model.safetensors: tensor 'model.layers.0.self_attn.q_proj.weight.quant_map': expected "
         "a part of a packed matrix, found none"},
        {kInt8, R"({"stored": {"$.SCB": {"shape": [287]}}})",
         "/model.safetensors: tensor '$.SCB': expected the shape (288), found (287)"},
        {kInt8, R"({"stored": {"$.weight_format": {"values": [1]}}})",
         "/model.safetensors: tensor '$.weight_format': expected 0, rows in their order, found "
         "another order"},
    });
}

TEST(PackedErrors, OfConfigsNameTheKey) {
    const std::string where = "C: 'quantization_config'", group = where + ": 'config_groups': 'g'";
    const auto groups = [](const char* weights, const char* format = "pack-quantized") {
        return concat(R"({"quant_method": "compressed-tensors", "format": ")", format,
                      R"(", "config_groups": {"g": {"targets": ["Linear"], "weights": )", weights,
                      "}}}");
    };
    const std::pair<std::string, std::string> cases[] = {
        {"[]", where + ": expected an object, found array"},
        {R"({"quant_method": "hqq"})",
         where + ": 'quant_method': expected one that is read (awq, bitsandbytes, "
                 "compressed-tensors, fbgemm_fp8, fp8, gptq, mxfp4), found hqq"},
        {R"({"quant_method": "awq", "version": "gemv"})",
         where + ": 'version': expected gemm, found gemv"},
        {R"({"quant_method": "awq", "bits": 3})",
         where + ": 'bits': expected a whole number from 4 to 4, found 3"},
        {R"({"quant_method": "awq", "group_size": 0})",
         where + ": 'group_size': expected -1 or a number above 0, found 0"},
        {R"({"quant_method": "gptq"})", where + ": expected 'bits', found none"},
        {R"({"quant_method": "gptq", "bits": 5})",
         where + ": 'bits': expected 2, 3, 4 or 8, found 5"},
        {R"({"quant_method": "gptq", "bits": 4, "checkpoint_format": "marlin"})",
         where + ": 'checkpoint_format': expected gptq or gptq_v2, found marlin"},
        {R"({"quant_method": "fp8", "weight_block_size": [128, 0]})",
         where + ": 'weight_block_size': expected two whole numbers above 0, as in [128, 128], "
                 "found [128,0]"},
        {R"({"quant_method": "compressed-tensors", "config_groups": []})",
         where + ": expected an object 'config_groups'"},
        {groups("{}", "nvfp4-pack-quantized"),
         group + ": 'format': expected pack-quantized, int-quantized, float-quantized, "
                 "naive-quantized or dense, found nvfp4-pack-quantized"},
        {groups(R"({"num_bits": 16})"),
         group + ": 'weights': 'num_bits': expected a whole number from 1 to 8, found 16"},
        {groups(R"({"num_bits": 4, "type": "float"})"),
         group + ": 'weights': 'type': expected int, or float of 8 bits that are not packed, found "
                 "float of 4 bits as pack-quantized"},
        {groups(R"({"strategy": "group"})"),
         group + ": 'weights': 'strategy': expected tensor, channel, group with a 'group_size' "
                 "above 0 or block with a 'block_structure', found group"},
        {groups("null"), where + ": 'config_groups': expected a group with 'weights', found none"},
        {R"({"quant_method": "compressed-tensors", "config_groups": {}, "transform_config":
             {"config_groups": {"u": {}}}})",
         where + ": 'transform_config': models with rotated matrices are not read"},
        {R"({"quant_method": "compressed-tensors", "config_groups": {}, "sparsity_config":
             {"format": "sparse-24-bitmask"}})",
         where + ": 'sparsity_config': expected the format dense, found \"sparse-24-bitmask\""},
    };
    for (const auto& [settings, expected] : cases) {
        const json config = {{"quantization_config", json::parse(settings)}};
        EXPECT_EQ(test::error_of([&] { parse_quantization(config, "C"); }), expected);
    }
}

TEST(PackedConfig, IsOfTheTextModelToo) {
    EXPECT_FALSE(parse_quantization(json::parse(R"({"quantization_config": null})"), "C"));
    const auto found = parse_quantization(json::parse(R"({"text_config": {"dtype": "bfloat16"},
                        "quantization_config": {"quant_method": "fp8",
                                                "weight_block_size": [64, 128]}})"),
                                          "C");
    ASSERT_TRUE(found.has_value());
    EXPECT_EQ(found->name, "fp8, blocks of 64 x 128");
    EXPECT_EQ(found->model_type, Dtype::bf16);
}

// A matrix of Conv1D, (in, out), could not be told from another.
TEST(PackedErrors, OfFamiliesThatAreNotReadNameThem) {
    json golden = packed_cases()["fp8, matrices"];
    test::TemporaryDirectory folder;
    const auto error_with = [&](const char* family, const char* method) {
        golden["config"]["model_type"] = family;
        golden["config"]["quantization_config"]["quant_method"] = method;
        for (const char* key : {"n_embd", "n_positions", "n_layer", "n_head"})
            golden["config"][key] = 4;
        test::write_packed_folder(folder.path(), golden["config"], {{"a", "U8", {1}, "x"}});
        return test::error_of([&] { open_model(folder.path()); });
    };
    const std::string of = folder.path().string() + ": models of '";
    EXPECT_EQ(error_with("gpt2", "fp8"), of + "gpt2' are not read from fp8");
    EXPECT_EQ(error_with("llama", "mxfp4"), of + "llama' are not read from mxfp4");
}

}  // namespace
}  // namespace hark::gpt
