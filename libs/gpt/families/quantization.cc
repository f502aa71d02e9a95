#include "gpt/families/quantization.h"

#include <algorithm>

#include "core/error.h"
#include "core/files/files.h"
#include "core/ranges.h"
#include "formats/packed/awq.h"
#include "formats/packed/bitsandbytes.h"
#include "formats/packed/fp8.h"
#include "formats/packed/gptq.h"
#include "gpt/families/compressed_config.h"
#include "gpt/families/json_config.h"
#include "text/unicode.h"

namespace hark::gpt {
namespace {

using nlohmann::json;

// A value as a message shows it.
std::string quantization_text(const JsonConfig& in, const char* key) {
    return in.has({key, nullptr}) ? in.text({key, nullptr}) : "none";
}

// Throws Error unless the setting, if it is there, has one of the values, in small letters.
void expect_setting(const JsonConfig& in, const char* key,
                    const std::vector<std::string>& expected) {
    const std::string found = lower_case(quantization_text(in, key));
    require(found == "none" || contains(expected, found), in.where(), ": '", key, "': expected ",
            joined(expected, " or "), ", found ", found);
}

// The number of rows of a group, or -1.
int64_t group_size_of(const JsonConfig& in) {
    const int64_t size = in.integer_or({"group_size", nullptr}, -1, 1 << 24, 128);
    require(size != 0, in.where(), ": 'group_size': expected -1 or a number above 0, found 0");
    return size;
}

Quantization read_awq(const json&, const JsonConfig& in) {
    in.integer_or({"bits", nullptr}, 4, 4, 4);
    expect_setting(in, "version", {"gemm"});
    expect_setting(in, "backend", {"autoawq"});
    require(in.boolean_or({"zero_point", nullptr}, true), in.where(),
            ": 'zero_point': expected true, the only layout that is read");
    return {"awq, 4 bits", make_awq_format(group_size_of(in))};
}

Quantization read_gptq(const json& settings, const JsonConfig& in) {
    GptqSettings gptq;
    gptq.bits = static_cast<int>(in.integer({"bits", nullptr}, 2, 8));
    require(gptq.bits <= 4 || gptq.bits == 8, in.where(), ": 'bits': expected 2, 3, 4 or 8, found ",
            gptq.bits);
    const std::string name = concat("gptq, ", gptq.bits, " bits");
    gptq.group_size = group_size_of(in);
    expect_setting(in, "checkpoint_format", {"gptq", "gptq_v2"});
    expect_setting(in, "pack_dtype", {"int32"});
    gptq.has_offset = quantization_text(in, "checkpoint_format") != "gptq_v2";
    // Modules with settings of their own: their parts say which.
    if (settings.contains("dynamic") && !settings["dynamic"].empty()) gptq.bits = 0;
    return {name, make_gptq_format(gptq)};
}

Quantization read_bitsandbytes(const json&, const JsonConfig& in) {
    const bool eight = in.boolean_or({"load_in_8bit", nullptr}, false);
    return {eight ? "bitsandbytes, 8 bits" : "bitsandbytes, 4 bits", make_bitsandbytes_format()};
}

Quantization read_fp8(const json& settings, const JsonConfig& in) {
    Cell block;
    const Key key{"weight_block_size", nullptr};
    if (in.has(key))
        block = block_size_of(settings[key.json], in.where() + ": 'weight_block_size'");
    const bool is_block = block.rows > 0;
    return {is_block ? concat("fp8, blocks of ", block.rows, " x ", block.columns) : "fp8",
            make_fp8_format(block)};
}

Quantization read_fbgemm(const json&, const JsonConfig&) {
    return {"fbgemm_fp8", make_fp8_format({})};
}

Quantization read_mxfp4(const json&, const JsonConfig&) { return {"mxfp4", nullptr}; }

struct Method {
    const char* name;  // quant_method
    Quantization (*read)(const json& settings, const JsonConfig& in);
};

constexpr Method kMethods[] = {
    {"awq", read_awq},
    {"bitsandbytes", read_bitsandbytes},
    {"compressed-tensors", read_compressed_tensors},
    {"fbgemm_fp8", read_fbgemm},
    {"fp8", read_fp8},
    {"gptq", read_gptq},
    {"mxfp4", read_mxfp4},
};

// The type that transformers loads the model in.
Dtype model_type_of(const json& config, const std::string& where) {
    for (const char* key : {"dtype", "torch_dtype"}) {
        if (!config.contains(key) || config[key].is_null()) continue;
        const std::string name = JsonConfig(config, where).text({key, nullptr});
        if (name == "bfloat16") return Dtype::bf16;
        if (name == "float16") return Dtype::f16;
        require(name == "float32", where, ": '", key,
                "': expected float32, float16 or bfloat16, found ", name);
        return Dtype::f32;
    }
    return Dtype::f32;
}

}  // namespace

std::optional<Quantization> parse_quantization(const json& config, const std::string& where) {
    constexpr const char* kKey = "quantization_config";
    const json* found = nullptr;
    const json* text = &config;
    if (config.contains("text_config") && config["text_config"].is_object())
        text = &config["text_config"];
    for (const json* root : {&config, text})
        if (root->contains(kKey) && !(*root)[kKey].is_null()) found = &(*root)[kKey];
    if (!found) return std::nullopt;
    const std::string place = concat(where, ": '", kKey, "'");
    require(found->is_object(), place, ": expected an object, found ", found->type_name());
    const JsonConfig in(*found, place);
    const std::string name = quantization_text(in, "quant_method");
    const Method* const method = std::find_if(std::begin(kMethods), std::end(kMethods),
                                              [&](const Method& one) { return name == one.name; });
    require(method != std::end(kMethods), place, ": 'quant_method': expected one that is read (",
            joined(kMethods, ", ", &Method::name), "), found ", name);
    Quantization quantization = method->read(*found, in);
    quantization.model_type = model_type_of(config, where);
    if (text != &config && quantization.model_type == Dtype::f32)
        quantization.model_type = model_type_of(*text, where);
    return quantization;
}

std::optional<Quantization> load_quantization(const std::filesystem::path& directory) {
    const std::filesystem::path path = directory / "config.json";
    const json config = parse_json(read_file(path, size_t{1} << 20), path.string());
    require(config.is_object(), path.string(), ": expected a JSON object");
    return parse_quantization(config, path.string());
}

}  // namespace hark::gpt
