// GGUF models of several files, as llama.cpp's gguf-split writes them.
#include <algorithm>
#include <cstdio>

#include "core/error.h"
#include "formats/gguf.h"

namespace hark {
namespace {

const std::string kNumber = "split.no", kCount = "split.count", kTensors = "split.tensors.count";
constexpr int64_t kMaxParts = 65535;  // the keys are u16

// "-00001-of-00003.gguf" of number 0; files count from 1.
std::string ending_of(int64_t number, int64_t count) {
    char text[64];
    std::snprintf(text, sizeof text, "-%05lld-of-%05lld.gguf", static_cast<long long>(number + 1),
                  static_cast<long long>(count));
    return text;
}

}  // namespace

void GgufFile::open_parts(const std::filesystem::path& path) {
    // 0: gguf-split --merge leaves the key in what it has joined.
    const int64_t count = has(kCount) ? integer(kCount, 0, kMaxParts) : 0;
    if (count <= 1) return;
    const int64_t number = integer(kNumber, 0, count - 1);
    require(number == 0, name(), ": is part ", number + 1, " of ", count,
            "; give the first one, NAME", ending_of(0, count));
    const std::string file = path.string(), ending = ending_of(0, count);
    require(file.ends_with(ending), name(), ": is part 1 of ", count,
            ": expected a name that ends with ", ending, ", by which the others are found");
    const int64_t tensors = integer(kTensors, 0, INT64_MAX);
    for (int64_t i = 1; i < count; ++i) {
        const std::string next = file.substr(0, file.size() - ending.size()) + ending_of(i, count);
        parts_.push_back(std::unique_ptr<GgufFile>(new GgufFile(next, Alone{})));
        const GgufFile& part = *parts_.back();
        part.check_part(i, count, tensors);
        for (const auto& [tensor, place] : part.tensors_) {
            const auto [found, is_new] = tensors_.emplace(tensor, place);
            require(is_new, part.name(), ": tensor '", tensor, "' is in ",
                    part_of(found->second).name(), " too");
        }
    }
    require(static_cast<int64_t>(tensors_.size()) == tensors, name(), ": key '", kTensors,
            "': expected the ", tensors_.size(), " tensors of the ", count, " parts, found ",
            tensors);
}

void GgufFile::check_part(int64_t number, int64_t count, int64_t tensors) const {
    const auto check = [&](const std::string& key, int64_t expected) {
        const int64_t found = integer(key, 0, INT64_MAX);
        require(found == expected, name(), ": key '", key, "': expected ", expected,
                ", as the other parts say, found ", found);
    };
    check(kNumber, number);
    check(kCount, count);
    check(kTensors, tensors);
}

const GgufFile& GgufFile::part_of(const Tensor& tensor) const {
    const auto part = std::find_if(parts_.begin(), parts_.end(), [&](const auto& part) {
        return part->file_.holds(tensor.data);
    });
    return part == parts_.end() ? *this : **part;
}

}  // namespace hark
