// Packed matrices: a line with quantization_config and the matrix's shape, then a safetensors file.
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "core/error.h"
#include "fuzz/memory_file.h"
#include "fuzz/target.h"
#include "gpt/families/quantization.h"
#include "gpt/families/widened_tensors.h"
#include "support/packed_folder.h"

using namespace hark;
using namespace hark::fuzz;

namespace {

// A folder whose model.safetensors is the input.
class PackedFolder {
  public:
    PackedFolder() {
        char name[] = "/tmp/hark-fuzz.XXXXXX";
        if (!::mkdtemp(name)) std::abort();
        path_ = name;
    }
    ~PackedFolder() { std::filesystem::remove_all(path_); }
    const std::filesystem::path& holding(const fuzz::MemoryFile& file) {
        std::filesystem::remove(path_ / "model.safetensors");
        std::filesystem::create_symlink(file.path(), path_ / "model.safetensors");
        return path_;
    }

  private:
    std::filesystem::path path_;
};

// A module "m", (32, 32), with parts by formula.
std::string module_file(const char* quantization, const nlohmann::json& parts) {
    nlohmann::json golden;
    for (const auto& [name, part] : parts.items()) golden["stored"]["m." + name] = part;
    const nlohmann::json line = {{"quantization_config", nlohmann::json::parse(quantization)},
                                 {"dtype", "bfloat16"},
                                 {"matrix", {32, 32}}};
    return line.dump() + "\n" + test::safetensors_bytes(test::stored_tensors(golden));
}

nlohmann::json part(const char* dtype, const std::vector<int64_t>& shape) {
    nlohmann::json part = {{"dtype", dtype}, {"shape", shape}};
    if (dtype == std::string("F16") || dtype == std::string("BF16") || dtype == std::string("F32"))
        part["scale"] = 0.5;
    return part;
}

nlohmann::json text(const std::string& values) {
    nlohmann::json part = {{"dtype", "U8"}, {"shape", {values.size()}}};
    for (const char c : values) part["values"].push_back(static_cast<int>(c));
    return part;
}

std::string compressed(const char* format, const char* weights) {
    return concat(R"({"quant_method":"compressed-tensors","format":")", format,
                  R"(","config_groups":{"g":{"targets":["Linear"],"weights":)", weights, "}}}");
}

}  // namespace

static std::vector<std::string> packed_seeds() {
    const nlohmann::json shape = {{"dtype", "I64"}, {"shape", {2}}, {"values", {32, 32}}};
    nlohmann::json order = part("I32", {32});
    for (int i = 0; i < 32; ++i) order["values"].push_back(i % 2);
    return {
        module_file(compressed("pack-quantized", R"({"num_bits":4,"symmetric":false,)"
                                                 R"("strategy":"group","group_size":16})")
                        .c_str(),
                    {{"weight_packed", part("I32", {32, 4})},
                     {"weight_scale", part("BF16", {32, 2})},
                     {"weight_zero_point", part("I32", {4, 2})},
                     {"weight_g_idx", order},
                     {"weight_shape", shape}}),
        module_file(compressed("pack-quantized", R"({"num_bits":3,"strategy":"channel"})").c_str(),
                    {{"weight_packed", part("I32", {32, 3})},
                     {"weight_scale", part("F16", {32, 1})},
                     {"weight_shape", shape}}),
        module_file(compressed("pack-quantized", R"({"num_bits":4,"strategy":"channel"})").c_str(),
                    {{"weight_packed", part("I32", {32, 4})},
                     {"weight_scale", part("BF16", {32, 1})},
                     {"weight_shape", shape}}),
        module_file(
            compressed("int-quantized", R"({"num_bits":8,"symmetric":false,"strategy":"channel"})")
                .c_str(),
            {{"weight", part("I8", {32, 32})},
             {"weight_scale", part("F32", {32, 1})},
             {"weight_zero_point", part("I8", {32, 1})}}),
        module_file(
            R"({"quant_method":"fp8","weight_block_size":[16,20]})",
            {{"weight", part("F8_E4M3", {32, 32})}, {"weight_scale_inv", part("F32", {2, 2})}}),
        module_file(R"({"quant_method":"awq","bits":4,"group_size":16})",
                    {{"qweight", part("I32", {32, 4})},
                     {"qzeros", part("I32", {2, 4})},
                     {"scales", part("F16", {2, 32})}}),
        module_file(R"({"quant_method":"gptq","bits":3,"group_size":16})",
                    {{"qweight", part("I32", {3, 32})},
                     {"qzeros", part("I32", {2, 3})},
                     {"scales", part("F16", {2, 32})},
                     {"g_idx", order}}),
        module_file(R"({"quant_method":"gptq","bits":4,"group_size":-1,"dynamic":{"a":{}}})",
                    {{"qweight", part("I32", {8, 32})},
                     {"qzeros", part("I32", {1, 8})},
                     {"scales", part("F16", {1, 32})}}),
        module_file(R"({"quant_method":"bitsandbytes","load_in_4bit":true})",
                    {{"weight", part("U8", {512, 1})},
                     {"weight.absmax", part("U8", {16})},
                     {"weight.quant_map", part("F32", {16})},
                     {"weight.nested_absmax", part("F32", {1})},
                     {"weight.nested_quant_map", part("F32", {256})},
                     {"weight.quant_state.bitsandbytes__nf4",
                      text(R"({"shape":[32,32],"dtype":"bfloat16","blocksize":64,)"
                           R"("nested_blocksize":256,"nested_offset":0.1})")}}),
        module_file(R"({"quant_method":"bitsandbytes","load_in_4bit":true})",
                    {{"weight", part("U8", {512, 1})},
                     {"weight.absmax", part("F32", {16})},
                     {"weight.quant_map", part("F32", {16})},
                     {"weight.quant_state.bitsandbytes__fp4",
                      text(R"({"shape":[32,32],"dtype":"float16","blocksize":64})")}}),
        module_file(R"({"quant_method":"bitsandbytes","load_in_8bit":true})",
                    {{"weight", part("I8", {32, 32})}, {"SCB", part("F32", {32})}}),
        module_file(R"({"quant_method":"fbgemm_fp8"})", {{"weight", part("F8_E4M3", {32, 32})},
                                                         {"weight_scale", part("F32", {32, 1})}}),
    };
}

static int packed_input(const uint8_t* data, size_t size) {
    static PackedFolder folder;
    const std::string_view input(reinterpret_cast<const char*>(data), size);
    const size_t line = input.find('\n');
    if (line == input.npos) return 0;
    try {
        const auto config = parse_json(input.substr(0, line), "C");
        if (!config.is_object()) return 0;
        const auto quantization = gpt::parse_quantization(config, "C");
        if (!quantization || !quantization->format || !config.contains("matrix")) return 0;
        const nlohmann::json& shape = config["matrix"];
        if (!shape.is_array() || shape.size() != 2) return 0;
        for (const nlohmann::json& n : shape)
            if (!n.is_number_integer() || n < 1 || n > 1 << 20) return 0;
        const fuzz::MemoryFile file(data + line + 1, size - line - 1);
        SafetensorsDirectory stored(folder.holding(file), "");
        gpt::WidenedTensors tensors(stored, *quantization->format, quantization->model_type);
        const Tensor found =
            tensors.take("m.weight", {shape[0].get<int64_t>(), shape[1].get<int64_t>()});
        unsigned sum = 0;
        for (size_t i = 0; i < found.bytes(); ++i)
            sum += static_cast<const uint8_t*>(found.data)[i];
        if (sum == 1) return describe(found).empty();  // used, so that the reads stay
    } catch (const Error&) {
    }
    return 0;
}

static const hark::fuzz::Target kPacked{"packed", packed_seeds, packed_input};
