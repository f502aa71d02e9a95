#include "serve/models/model_memory.h"

#include <algorithm>
#include <numeric>

#include "core/error.h"
#include "core/shortest.h"
#include "hub/model_handle.h"
#include "hub/tensor_list.h"
#include "kernels/quant/quantize.h"
#include "kernels/runtime/backend.h"

namespace hark::serve {
namespace {

namespace fs = std::filesystem;

// Of all files of a folder, or of all parts of a split file.
int64_t bytes_on_disk(const fs::path& path) try {
    constexpr std::string_view kFirst = "-00001-of-";
    const std::string name = path.filename().string();
    const size_t at = name.find(kFirst);
    if (!fs::is_directory(path) && at == name.npos)
        return static_cast<int64_t>(fs::file_size(path));
    const std::string begin = fs::is_directory(path) ? "" : name.substr(0, at + 1);
    int64_t bytes = 0;
    for (const fs::directory_entry& file :
         fs::directory_iterator(fs::is_directory(path) ? path : path.parent_path()))
        if (file.is_regular_file() && file.path().filename().string().starts_with(begin))
            bytes += static_cast<int64_t>(file.file_size());
    return bytes;
} catch (const fs::filesystem_error& why) {
    fail(why.path1().string(), ": cannot be read: ", why.code().message());
}

}  // namespace

int64_t weight_bytes(const models::ModelHandle& model, const fs::path& path,
                     const Precision& precision) {
    using enum WeightPrecision;
    const Dtype stored = model.gpt ? gpt::stored_type(*model.gpt) : model.whisper->stored_type();
    const bool keeps = precision.weights == as_stored || precision.weights == quantized_or_f16 ||
                       precision.weights == quantized_or_bf16;
    if (keeps && is_quantized(stored)) return bytes_on_disk(path);
    int64_t value = 2;
    if (precision.weights == as_stored) value = static_cast<int64_t>(size_of(stored));
    if (precision.weights == f32) value = 4;
    if (precision.weights == int8 || precision.weights == fp8) value = 1;
    int64_t bytes = 0;
    for (const models::ModelTensor& tensor : models::tensor_list(model))
        bytes += tensor.size() * (tensor.matrix ? value : 4);
    return bytes;
}

std::vector<int64_t> share_caches(int64_t bytes, std::span<const ModelNeed> needs) {
    std::vector<size_t> order(needs.size());
    std::iota(order.begin(), order.end(), size_t{0});
    // Who has the least use for them first: what it leaves is for the others.
    std::sort(order.begin(), order.end(),
              [&](size_t one, size_t other) { return needs[one].most < needs[other].most; });
    std::vector<int64_t> shares(needs.size());
    int64_t left = std::ssize(needs);
    for (const size_t i : order) {
        shares[i] = std::min(std::max(bytes / left, needs[i].least), needs[i].most);
        bytes -= shares[i];
        --left;
    }
    return shares;
}

std::string gigabytes(int64_t bytes) {
    return concat(shortest(static_cast<double>(bytes / 10'000'000) / 100), " GB");
}

}  // namespace hark::serve
