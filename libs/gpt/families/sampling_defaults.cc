#include "gpt/families/sampling_defaults.h"

#include "core/error.h"
#include "core/files/files.h"
#include "core/json/json.h"
#include "formats/gguf.h"

namespace hark::gpt {

SamplingDefaults read_sampling_defaults(const std::filesystem::path& directory) {
    SamplingDefaults defaults;
    const std::filesystem::path path = directory / "generation_config.json";
    if (!std::filesystem::exists(path)) return defaults;
    const nlohmann::json root = parse_json(read_file(path, size_t{1} << 20), path.string());
    require(root.is_object(), path.string(), ": expected a JSON object");
    for (const char* key :
         {"temperature", "top_k", "top_p", "min_p", "typical_p", "repetition_penalty"}) {
        if (!root.contains(key) || root[key].is_null()) continue;
        require(root[key].is_number(), path.string(), ": ", key, ": expected a number, found ",
                root[key].type_name());
        defaults[key] = root[key].get<double>();
    }
    return defaults;
}

SamplingDefaults sampling_defaults_of(const GgufFile& file) {
    SamplingDefaults defaults;
    const auto integer = [&](const char* name, const char* key, int64_t most) {
        const std::string full = concat("general.sampling.", key);
        if (file.has(full)) defaults[name] = static_cast<double>(file.integer(full, 0, most));
    };
    const auto number = [&](const char* name, const char* key) {
        const std::string full = concat("general.sampling.", key);
        if (file.has(full)) defaults[name] = file.number(full);
    };
    integer("top_k", "top_k", INT32_MAX);
    integer("mirostat", "mirostat", 2);
    number("temperature", "temp");
    number("top_p", "top_p");
    number("min_p", "min_p");
    number("repetition_penalty", "penalty_repeat");
    number("xtc_probability", "xtc_probability");
    number("xtc_threshold", "xtc_threshold");
    number("mirostat_tau", "mirostat_tau");
    number("mirostat_eta", "mirostat_eta");
    return defaults;
}

}  // namespace hark::gpt
