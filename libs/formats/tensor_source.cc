#include "formats/tensor_source.h"

#include <algorithm>
#include <cmath>

#include "core/files/files.h"
#include "core/half.h"
#include "core/json/json.h"

namespace hark {

namespace fs = std::filesystem;

std::set<std::string> safetensors_shards(const fs::path& index) {
    const auto root = parse_json(read_file(index, size_t{16} << 20), index.string());
    require(root.is_object() && root.contains("weight_map") && root["weight_map"].is_object(),
            index.string(), ": expected an object 'weight_map'");
    std::set<std::string> names;
    for (const auto& [tensor, file] : root["weight_map"].items()) {
        const std::string name = file.is_string() ? file.get<std::string>() : "";
        const bool plain = fs::path(name).filename() == name && name != "." && name != "..";
        require(!name.empty() && plain, index.string(), ": '", tensor,
                "': expected a file's name, found ", file.dump());
        names.insert(name);
    }
    require(!names.empty(), index.string(), ": 'weight_map' is empty");
    return names;
}

SafetensorsDirectory::SafetensorsDirectory(const fs::path& directory, std::string prefix)
    : prefix_(std::move(prefix)) {
    const fs::path whole = directory / "model.safetensors";
    const fs::path index = directory / kSafetensorsIndex;
    std::error_code failed;
    if (fs::exists(whole, failed) || !fs::exists(index, failed)) {
        files_.push_back(std::make_unique<SafetensorsFile>(whole));
        where_ = files_.front()->name();
        return;
    }
    where_ = directory.string();
    for (const std::string& name : safetensors_shards(index))
        files_.push_back(std::make_unique<SafetensorsFile>(directory / name));
}

// "language_model.model." also stands for "language_model.": the output table is next to the model
// that the other tensors are in.
SafetensorsDirectory::Found SafetensorsDirectory::find(const std::string& name) const {
    const size_t dot = prefix_.size() < 2 ? prefix_.npos : prefix_.rfind('.', prefix_.size() - 2);
    const std::string outer = dot == prefix_.npos ? "" : prefix_.substr(0, dot + 1);
    for (const auto& file : files_)
        for (const std::string& candidate : {prefix_ + name, outer + name, name})
            if (const TensorEntry* entry = file->find(candidate)) return {file.get(), entry};
    return {nullptr, nullptr};
}

bool SafetensorsDirectory::has(const std::string& name) const {
    return find(name).second != nullptr;
}

Tensor SafetensorsDirectory::take(const std::string& name, std::initializer_list<int64_t> shape) {
    const auto [file, entry] = find(name);
    require(entry != nullptr, where_, ": expected a tensor '", prefix_, name, "', found none");
    const Tensor tensor = file->tensor(*entry);
    require(std::equal(entry->shape.begin(), entry->shape.end(), shape.begin(), shape.end()),
            file->name(), ": tensor '", entry->name, "': expected ",
            Tensor(nullptr, tensor.dtype, shape), ", found ", tensor);
    taken_.push_back({file, entry});
    return tensor;
}

RawTensor SafetensorsDirectory::find_raw(const std::string& name) const {
    const auto [file, entry] = find(name);
    return entry ? RawTensor{file, entry, file->data(*entry)} : RawTensor();
}

RawTensor SafetensorsDirectory::take_raw(const std::string& name) {
    const RawTensor raw = find_raw(name);
    if (raw) taken_.push_back({raw.file, raw.entry});
    return raw;
}

void SafetensorsDirectory::release_tensors() {
    for (const auto& [file, entry] : taken_) file->forget(*entry);
    taken_.clear();
}

bool SafetensorsDirectory::is_mapped(const Tensor& tensor) const {
    return std::any_of(files_.begin(), files_.end(),
                       [&](const auto& file) { return file->holds(tensor.data); });
}

Tensor RandomTensors::take(const std::string& name, std::initializer_list<int64_t> shape) {
    Tensor tensor(nullptr, Dtype::f16, shape);
    const int64_t n = tensor.size(), fan_in = tensor.size() / std::max<int64_t>(tensor.dim(0), 1);
    buffers_.push_back(std::make_unique<uint16_t[]>(static_cast<size_t>(n)));
    tensor.data = buffers_.back().get();
    const bool norm = tensor.rank == 1 && name.ends_with("weight");
    const float scale = tensor.rank == 1 ? 0.05f : std::sqrt(3.0f / static_cast<float>(fan_in));
    f16_t* values = tensor.as<f16_t>();
    for (int64_t i = 0; i < n; ++i) {
        // Numerical Recipes' 64-bit linear congruential generator; its high bits are good enough.
        state_ = state_ * 6364136223846793005u + 1442695040888963407u;
        const float uniform = static_cast<float>(state_ >> 40) * 0x1p-23f - 1.0f;  // [-1, 1)
        values[i] = to_f16(uniform * scale + (norm ? 1.0f : 0.0f));
    }
    return tensor;
}

}  // namespace hark
