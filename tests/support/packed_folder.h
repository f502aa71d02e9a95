// Folders of packed matrices, from the golden file of tests/golden/packed.py.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/half.h"
#include "core/json/json.h"
#include "formats/safetensors.h"
#include "support/family_weights.h"
#include "support/formula_weights.h"
#include "support/process.h"

namespace hark::test {

// The bytes of a number in that type of safetensors.
inline std::string number_bytes(const std::string& dtype, double value) {
    const auto bytes = [](auto number) {
        return std::string(reinterpret_cast<const char*>(&number), sizeof number);
    };
    if (dtype == "F32") return bytes(static_cast<float>(value));
    if (dtype == "F16") return bytes(to_f16(static_cast<float>(value)));
    if (dtype == "BF16") return bytes(to_bf16(static_cast<float>(value)));
    if (dtype == "I64") return bytes(static_cast<int64_t>(value));
    if (dtype == "I32") return bytes(static_cast<int32_t>(value));
    return bytes(static_cast<uint8_t>(static_cast<int>(value)));
}

// A part's values by formula, or as the golden file has them.
inline std::string part_bytes(const std::string& name, const nlohmann::json& part) {
    const std::string dtype = part["dtype"];
    const std::vector<int64_t> shape = part["shape"];
    int64_t count = 1;
    for (const int64_t n : shape) count *= n;
    std::string bytes;
    if (part.contains("plain")) {
        const std::string bare = name.starts_with("model.") ? name.substr(6) : name;
        for (const float value : FamilyWeights(false).values(bare, count, shape.size() == 1))
            bytes += number_bytes(dtype, value);
        return bytes;
    }
    if (part.contains("values")) {
        for (const double value : part["values"]) bytes += number_bytes(dtype, value);
        return bytes;
    }
    Formula formula(name, {});
    if (part.contains("scale")) {
        formula.offset = 1.25 * part["scale"].get<double>() + part.value("offset", 0.0);
        formula.scale = 0.75 * part["scale"].get<double>();
    }
    for (int64_t i = 0; i < count; ++i) {
        const uint64_t bits = formula.bits(static_cast<uint64_t>(i));
        if (dtype == "F32" || dtype == "F16" || dtype == "BF16") {
            bytes += number_bytes(dtype, formula(static_cast<uint64_t>(i)));
        } else if (dtype == "I32") {
            const auto word = static_cast<uint32_t>(bits >> 32);
            bytes += std::string(reinterpret_cast<const char*>(&word), 4);
        } else {
            auto byte = static_cast<uint8_t>(bits >> 56);
            if (dtype == "F8_E4M3" && (byte & 0x7f) == 0x7f) byte ^= 1;
            bytes += static_cast<char>(byte);
        }
    }
    return bytes;
}

struct StoredTensor {
    std::string name, dtype;
    std::vector<int64_t> shape;
    std::string bytes;
};

inline std::vector<StoredTensor> stored_tensors(const nlohmann::json& golden) {
    std::vector<StoredTensor> tensors;
    for (const auto& [name, part] : golden["stored"].items()) {
        nlohmann::json own = part;
        if (own.contains("values") && own["values"].is_string())
            own["values"] = golden["shared"][own["values"].get<std::string>()];
        tensors.push_back({name, own["dtype"], own["shape"], part_bytes(name, own)});
    }
    return tensors;
}

inline std::string safetensors_bytes(const std::vector<StoredTensor>& tensors) {
    SafetensorsHeader header;
    std::string data;
    for (const StoredTensor& tensor : tensors) {
        header.tensors.push_back({tensor.name, tensor.dtype, tensor.shape, data.size(),
                                  data.size() + tensor.bytes.size()});
        data += tensor.bytes;
    }
    return format_safetensors_header(header) + data;
}

inline void write_packed_folder(const std::filesystem::path& folder, const nlohmann::json& config,
                                const std::vector<StoredTensor>& tensors) {
    std::filesystem::create_directories(folder);
    write_text(folder / "config.json", config.dump());
    write_text(folder / "model.safetensors", safetensors_bytes(tensors));
}

}  // namespace hark::test
