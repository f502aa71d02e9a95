// Tiny models that were trained for nothing, as Hugging Face folders: weights by formula, a
// tokenizer of tests/golden/model_tokenizers/, a chat template.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <functional>
#include <string>

#include "core/files/io.h"
#include "core/json/json.h"
#include "formats/safetensors.h"
#include "gpt/families/tensor_spec.h"
#include "support/family_weights.h"
#include "support/process.h"

namespace hark::test {

inline constexpr const char* kTinyConfig =
    R"({"model_type": "qwen2", "vocab_size": 512, "hidden_size": 64, "intermediate_size": 96,
        "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
        "max_position_embeddings": 128, "tie_word_embeddings": true, "eos_token_id": 1})";

inline constexpr const char* kTinyTemplate =
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if mood %}({{ mood }})\n{% endif %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

// The values of a tensor with that many.
using TensorValues = std::function<std::vector<float>(const gpt::TensorSpec&, int64_t)>;

inline std::vector<float> formula_values(const gpt::TensorSpec& spec, int64_t count) {
    return FamilyWeights(false).values(spec.name, count, spec.columns == 0);
}

// Of a file with all tensors in f32. `prefix`: of their names, but not of the output table, which
// is next to a model inside another one.
inline SafetensorsHeader tiny_header(const std::vector<gpt::TensorSpec>& specs,
                                     const std::string& prefix) {
    const std::string outer = prefix == "language_model.model." ? "language_model." : "";
    SafetensorsHeader header;
    for (const gpt::TensorSpec& spec : specs) {
        std::vector<int64_t> shape = {spec.rows};
        if (spec.columns > 0) shape.push_back(spec.columns);
        const uint64_t bytes =
            4 * static_cast<uint64_t>(spec.rows * std::max<int64_t>(spec.columns, 1));
        const bool is_output = spec.part == gpt::Part::lm_head;
        header.tensors.push_back({(is_output ? outer : prefix) + spec.name, "F32", shape,
                                  header.data_bytes, header.data_bytes + bytes});
        header.data_bytes += bytes;
    }
    return header;
}

// `prefix`: of the tensors' names.
inline void write_tiny_model(const std::filesystem::path& folder, const std::string& config,
                             const std::string& tokenizer, const std::string& prefix = "model.",
                             const TensorValues& values = formula_values) {
    std::filesystem::create_directories(folder);
    write_text(folder / "config.json", config);
    const auto golden = nlohmann::ordered_json::parse(
        read_text(source_dir() / "tests/golden/model_tokenizers" / (tokenizer + ".json")));
    write_text(folder / "tokenizer.json", golden["tokenizer"].dump());
    write_text(folder / "tokenizer_config.json", golden["config"].dump());
    write_text(folder / "chat_template.jinja", kTinyTemplate);
    const auto specs = gpt::tensor_specs(gpt::parse_config(config, "tiny"));
    const SafetensorsHeader header = tiny_header(specs, prefix);
    const std::filesystem::path path = folder / "model.safetensors";
    const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    ASSERT_GE(fd, 0);
    ByteWriter out(fd, path.string());
    out.write(format_safetensors_header(header));
    for (const gpt::TensorSpec& spec : specs)
        write_values(out, values(spec, spec.rows * std::max<int64_t>(spec.columns, 1)), Dtype::f32,
                     spec.name);
    out.flush();
    ::close(fd);
}

inline void write_tiny_qwen2(const std::filesystem::path& folder) {
    write_tiny_model(folder, kTinyConfig, "qwen2");
}

}  // namespace hark::test
