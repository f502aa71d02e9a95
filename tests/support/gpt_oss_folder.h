// gpt-oss's folders: weights by formula.
#pragma once

#include <filesystem>
#include <string>

#include "core/error.h"
#include "core/json/json.h"
#include "formats/safetensors.h"
#include "gpt/families/tensor_spec.h"
#include "support/family_weights.h"
#include "support/process.h"

namespace hark::test {

// Bytes of a file's tensors under their names, from a source that has what is asked for.
class FolderWriter {
  public:
    explicit FolderWriter(TensorSource& source) : source_(source) {}
    void add(const std::string& name, std::initializer_list<int64_t> shape) {
        const Tensor tensor = source_.take(name, shape);
        const std::string stored = name == "lm_head.weight" ? name : "model." + name;
        header_.tensors.push_back({stored, safetensors_name(tensor.dtype), shape,
                                   header_.data_bytes, header_.data_bytes + tensor.bytes()});
        header_.data_bytes += tensor.bytes();
        data_.append(static_cast<const char*>(tensor.data), tensor.bytes());
    }
    void write(const std::filesystem::path& folder, const nlohmann::json& config) const {
        std::filesystem::create_directories(folder);
        write_text(folder / "config.json", config.dump());
        write_text(folder / "model.safetensors", format_safetensors_header(header_) + data_);
    }

  private:
    TensorSource& source_;
    SafetensorsHeader header_;
    std::string data_;
};

// gpt-oss's folder as it is published: experts stacked, in mxfp4 or as numbers.
inline void write_gpt_oss(const std::filesystem::path& folder, const nlohmann::json& settings,
                          bool has_blocks) {
    const gpt::DecoderConfig c = gpt::parse_config(settings.dump(), "C");
    FamilyWeights weights(false, has_blocks);
    FolderWriter out(weights);
    for (const gpt::TensorSpec& spec : gpt::tensor_specs(c)) {
        if (spec.expert >= 0) continue;
        if (spec.columns > 0)
            out.add(spec.name, {spec.rows, spec.columns});
        else
            out.add(spec.name, {spec.rows});
    }
    const int64_t e = c.experts.count, i = c.experts.n_inner, k = c.n_embd;
    for (int64_t layer = 0; layer < c.n_layer; ++layer) {
        const std::string at = concat("layers.", layer, ".mlp.experts.");
        out.add(at + "gate_up_proj_bias", {e, 2 * i});
        out.add(at + "down_proj_bias", {e, k});
        if (has_blocks) {
            out.add(at + "gate_up_proj_blocks", {e, 2 * i, k / 32, 16});
            out.add(at + "gate_up_proj_scales", {e, 2 * i, k / 32});
            out.add(at + "down_proj_blocks", {e, k, i / 32, 16});
            out.add(at + "down_proj_scales", {e, k, i / 32});
        } else {
            out.add(at + "gate_up_proj", {e, k, 2 * i});
            out.add(at + "down_proj", {e, i, k});
        }
    }
    out.write(folder, settings);
}

}  // namespace hark::test
