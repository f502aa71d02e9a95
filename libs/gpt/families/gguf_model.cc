#include "gpt/families/gguf_model.h"

#include <algorithm>
#include <cstring>

#include "core/error.h"
#include "gpt/families/config_reader.h"
#include "gpt/families/family.h"
#include "gpt/families/gguf_config.h"

namespace hark::gpt {
namespace {

DecoderConfig read_config(const GgufFile& file) {
    const Family& family = family_of_gguf(file.text("general.architecture"), file.name());
    return family.read(GgufConfig(file));
}

}  // namespace

GgufModel::GgufModel(const std::filesystem::path& path) : file_(path), config_(read_config(file_)) {
    for (const TensorSpec& spec : tensor_specs(config_)) {
        specs_[spec.name] = spec;
        gpt::take(*this, spec);
    }
    taken_.clear();
    copies_.clear();
}

std::shared_ptr<const Tokenizer> GgufModel::tokenizer() const {
    if (!tokenizer_) tokenizer_ = std::make_shared<Tokenizer>(Tokenizer::from_gguf(file_));
    return tokenizer_;
}

std::optional<ChatTemplate> GgufModel::chat_template() const {
    const std::string key = "tokenizer.chat_template";
    if (!file_.has(key)) return std::nullopt;
    std::map<std::string, std::string> specials;
    const std::shared_ptr<const Tokenizer> tokens = tokenizer();
    const auto add = [&](const char* name, const std::optional<int32_t>& id) {
        if (id) specials[name] = tokens->token(*id);
    };
    add("bos_token", tokens->special_ids().bos);
    add("eos_token", tokens->special_ids().eos);
    add("unk_token", tokens->special_ids().unknown);
    add("pad_token", tokens->special_ids().padding);
    return ChatTemplate::parse(file_.text(key), concat(file_.name(), ": ", key), specials);
}

std::string GgufModel::license() const {
    const std::string key = "general.license";
    return file_.has(key) ? std::string(file_.text(key)) : "";
}

bool GgufModel::has(const std::string& name) const {
    const auto spec = specs_.find(name);
    return spec != specs_.end() && file_.tensors().contains(spec->second.gguf);
}

Tensor GgufModel::take(const std::string& name, std::initializer_list<int64_t> shape) {
    const auto spec = specs_.find(name);
    require(spec != specs_.end(), file_.name(), ": no tensor '", name, "'");
    const std::string& stored = spec->second.gguf;
    const auto found = file_.tensors().find(stored);
    require(found != file_.tensors().end(), file_.name(), ": expected a tensor '", stored, "' for ",
            name, ", found none");
    const Tensor tensor =
        spec->second.expert < 0 ? found->second : part_of(found->second, spec->second);
    const Tensor expected(nullptr, tensor.dtype, shape);
    require(tensor.rank == expected.rank && tensor.shape == expected.shape, file_.name(),
            ": tensor '", stored, "': expected ", expected, ", found ", tensor);
    taken_.push_back(tensor);
    if (!family_of(config_.family, file_.name()).gguf_interleaves) return tensor;
    const Part part = spec->second.part;
    if (part == Part::q || part == Part::q_bias) return in_halves(tensor, config_.n_head);
    if (part == Part::k || part == Part::k_bias) return in_halves(tensor, config_.n_kv_head);
    return tensor;
}

// An expert's or a head's part of a tensor of them all.
Tensor GgufModel::part_of(const Tensor& stacked, const TensorSpec& spec) const {
    const bool of_head = spec.part == Part::k_b || spec.part == Part::v_b;
    require(stacked.rank > 1 && stacked.dim(0) == spec.stacked, file_.name(), ": tensor '",
            spec.gguf, "': expected one of ", spec.stacked, of_head ? " heads" : " experts",
            ", found ", stacked);
    Tensor part = stacked.slice(spec.expert, spec.expert + 1);
    part.rank -= 1;
    std::copy(stacked.shape.begin() + 1, stacked.shape.end(), part.shape.begin());
    part.shape.back() = 0;
    return part;
}

// Row 2 j of a head is row j in halves, row 2 j + 1 is row j + D / 2.
Tensor GgufModel::in_halves(const Tensor& tensor, int64_t heads) {
    const int64_t d = tensor.dim(0) / heads;
    const size_t row = tensor.bytes() / static_cast<size_t>(tensor.dim(0));
    copies_.push_back(std::make_unique<std::byte[]>(tensor.bytes()));
    const auto* from = static_cast<const std::byte*>(tensor.data);
    for (int64_t h = 0; h < heads; ++h)
        for (int64_t j = 0; j < d; ++j) {
            const int64_t source = h * d + (j < d / 2 ? 2 * j : 2 * (j - d / 2) + 1);
            std::memcpy(copies_.back().get() + static_cast<size_t>(h * d + j) * row,
                        from + static_cast<size_t>(source) * row, row);
        }
    Tensor turned = tensor;
    turned.data = copies_.back().get();
    return turned;
}

void GgufModel::release_tensors() {
    for (const Tensor& tensor : taken_) file_.forget(tensor);
    taken_.clear();
    copies_.clear();
}

}  // namespace hark::gpt
