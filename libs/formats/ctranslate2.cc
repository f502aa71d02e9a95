#include "formats/ctranslate2.h"

#include <cstring>

#include "core/error.h"

namespace hark {
namespace {

constexpr uint32_t kMinCtranslate2 = 4, kMaxCtranslate2 = 6;  // versions

struct StoredDtype {
    const char* name;
    uint64_t bytes;
};

// Indexed by the file's dtype numbers.
constexpr StoredDtype kStoredDtypes[] = {
    {"F32", 4}, {kCtranslate2Int8, 1}, {kCtranslate2Int16, 2}, {"I32", 4}, {"F16", 2}, {"BF16", 2}};

std::string ctranslate2_name(ByteCursor& in, const std::string& where) {
    const std::string_view text = in.take(in.number<uint16_t>());
    require(text.ends_with('\0'), where, ": expected a name before byte ", in.at());
    return std::string(text.substr(0, text.size() - 1));
}

}  // namespace

Ctranslate2Variables::Ctranslate2Variables(const std::filesystem::path& path,
                                           const std::string& spec, uint32_t revision)
    : file_(path) {
    ByteCursor in(file_.text(), name());
    read_header(in, spec, revision);
    for (auto left = in.number<uint32_t>(); left > 0; --left) read_variable(in);
    for (auto left = in.number<uint32_t>(); left > 0; --left) {
        const std::string alias = ctranslate2_name(in, name());
        aliases_[alias] = ctranslate2_name(in, name());
    }
    require(in.left() == 0, name(), ": ", in.left(), " bytes after what its header announces");
}

void Ctranslate2Variables::read_header(ByteCursor& in, const std::string& spec, uint32_t revision) {
    const auto version = in.number<uint32_t>();
    require(kMinCtranslate2 <= version && version <= kMaxCtranslate2, name(),
            ": expected a CTranslate2 model of version ", kMinCtranslate2, " to ", kMaxCtranslate2,
            ", found ", version);
    const std::string found = ctranslate2_name(in, name());
    require(found == spec, name(), ": expected ", spec, ", found '", found, "'");
    const auto stored = in.number<uint32_t>();
    require(stored == revision, name(), ": expected revision ", revision, " of ", spec, ", found ",
            stored);
}

void Ctranslate2Variables::read_variable(ByteCursor& in) {
    TensorEntry entry;
    entry.name = ctranslate2_name(in, name());
    const std::string at = concat(name(), ": '", entry.name, "'");
    uint64_t size = 1;
    for (int rank = in.number<uint8_t>(); rank > 0; --rank) {
        const auto dim = in.number<uint32_t>();
        size *= dim;
        require(size <= UINT32_MAX, at, ": has more values than the format has bytes");
        entry.shape.push_back(dim);
    }
    const size_t dtype = in.number<uint8_t>();
    require(dtype < std::size(kStoredDtypes), at, ": unknown dtype ", dtype);
    entry.dtype = kStoredDtypes[dtype].name;
    const auto bytes = in.number<uint32_t>();
    require(size * kStoredDtypes[dtype].bytes == bytes, at, ": its shape needs ", size,
            " values of ", entry.dtype, ", found ", bytes, " bytes");
    entry.begin = in.at();
    in.take(bytes);
    entry.end = in.at();
    const std::string key = entry.name;
    require(variables_.try_emplace(key, std::move(entry)).second, at, " is there twice");
}

const TensorEntry* Ctranslate2Variables::find(const std::string& variable) const {
    const auto alias = aliases_.find(variable);
    const auto found = variables_.find(alias == aliases_.end() ? variable : alias->second);
    return found == variables_.end() ? nullptr : &found->second;
}

const TensorEntry& Ctranslate2Variables::need(const std::string& variable) const {
    const TensorEntry* found = find(variable);
    require(found, name(), ": expected '", variable, "', found none");
    return *found;
}

int64_t Ctranslate2Variables::number(const std::string& variable) const {
    const TensorEntry& entry = need(variable);
    require(entry.shape.empty() && entry.dtype == kCtranslate2Int16, name(), ": '", variable,
            "': expected a number of 16 bits");
    int16_t value = 0;
    std::memcpy(&value, data(entry), sizeof value);
    return value;
}

int64_t Ctranslate2Variables::dim(const std::string& variable, size_t i) const {
    const TensorEntry& entry = need(variable);
    require(i < entry.shape.size(), name(), ": '", variable, "': expected more than ", i,
            " dimensions, found ", entry.shape.size());
    return entry.shape[i];
}

void Ctranslate2Variables::forget(const TensorEntry& entry) const {
    file_.forget(entry.begin, entry.end - entry.begin);
}

}  // namespace hark
