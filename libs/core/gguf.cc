#include "core/gguf.h"

#include <algorithm>
#include <cstring>

#include "core/error.h"
#include "core/ggml.h"

namespace hark {
namespace {

// Large vocabularies take 20 MB.
constexpr size_t kMaxHeader = size_t{64} << 20;
constexpr size_t kMaxName = 65535;
constexpr size_t kLeastKey = 8 + 4 + 1, kLeastTensor = 8 + 4 + 8 + 4 + 8;  // bytes of one
constexpr int64_t kDefaultAlignment = 32, kMaxAlignment = 1 << 16;

// Numbers that stand for types of values.
enum Type : uint32_t {
    kU8,
    kI8,
    kU16,
    kI16,
    kU32,
    kI32,
    kF32,
    kBool,
    kString,
    kArray,
    kU64,
    kI64,
    kF64
};

struct TypeInfo {
    const char* name;
    size_t bytes;  // 0: not of one size
};
constexpr TypeInfo kTypes[] = {{"u8", 1},  {"i8", 1},  {"u16", 2},  {"i16", 2},    {"u32", 4},
                               {"i32", 4}, {"f32", 4}, {"bool", 1}, {"string", 0}, {"array", 0},
                               {"u64", 8}, {"i64", 8}, {"f64", 8}};

bool is_integer(uint32_t type) { return type <= kI32 || type == kU64 || type == kI64; }
bool is_number(uint32_t type) { return type == kF32 || type == kF64; }
bool is_text(uint32_t type) { return type == kString; }
bool is_boolean(uint32_t type) { return type == kBool; }

}  // namespace

// Reads on from the file's beginning, and never behind its end.
class GgufHeader {
  public:
    explicit GgufHeader(const MappedFile& file) : file_(file) {}

    size_t offset() const { return at_; }
    size_t left() const { return file_.size() - at_; }
    // Throws where `count` values of `bytes` each, or more, cannot follow; `what` they are.
    void expect(uint64_t count, size_t bytes, const std::string& what) const {
        uint64_t all = 0;
        if (__builtin_mul_overflow(count, uint64_t{bytes}, &all) || all > left())
            fail(file_.name(), ": ", what, ": expected at most ", left(),
                 " bytes, which is what is left of the file, found ", count,
                 bytes == 1 ? "" : concat(" values of ", bytes));
        require(all <= kMaxHeader - at_, file_.name(), ": ", what,
                ": expected a header of at most ", kMaxHeader, " bytes, found one of ", at_ + all,
                " or more");
    }
    // Passes over them.
    const std::byte* take(uint64_t count, size_t bytes, const std::string& what) {
        expect(count, bytes, what);
        const std::byte* from = file_.data() + at_;
        at_ += static_cast<size_t>(count) * bytes;
        return from;
    }
    template <class T>
    T read(const std::string& what) {
        T value;
        std::memcpy(&value, take(1, sizeof value, what), sizeof value);
        return value;
    }
    std::string_view text(const std::string& what) {
        const auto bytes = read<uint64_t>(what);
        return {reinterpret_cast<const char*>(take(bytes, 1, what)), static_cast<size_t>(bytes)};
    }
    std::string name(const std::string& what) {
        const std::string_view name = text(what);
        require(name.size() <= kMaxName, file_.name(), ": ", what, ": expected at most ", kMaxName,
                " bytes, found ", name.size());
        return std::string(name);
    }

  private:
    const MappedFile& file_;
    size_t at_ = 0;
};

GgufFile::GgufFile(const std::filesystem::path& path) : file_(path) {
    GgufHeader header(file_);
    const auto* magic = reinterpret_cast<const char*>(header.take(4, 1, "the magic"));
    require(std::string_view(magic, 4) == kGgufMagic, name(), ": expected a GGUF file, which ",
            "begins with ", kGgufMagic, ", found another");
    const auto version = header.read<uint32_t>("the version");
    require(version == 2 || version == 3, name(), ": expected version 2 or 3 of GGUF, ",
            "little-endian, found ", version);
    const auto tensors = header.read<uint64_t>("the number of tensors");
    const auto keys = header.read<uint64_t>("the number of keys");
    header.expect(keys, kLeastKey, "the keys");
    for (uint64_t i = 0; i < keys; ++i) {
        const std::string key = header.name(concat("key ", i, " of ", keys));
        const Value value = read_value(header, key);
        require(values_.emplace(key, value).second, name(), ": the key '", key, "' stands twice");
    }
    read_tensors(header, tensors);
}

GgufFile::Value GgufFile::read_value(GgufHeader& header, const std::string& key) const {
    const std::string where = concat("key '", key, "'");
    Value value{.type = header.read<uint32_t>(where)};
    if (value.type == kArray) {
        value.array = true;
        value.type = header.read<uint32_t>(where);
        value.count = header.read<uint64_t>(where);
    }
    require(value.type <= kF64 && value.type != kArray, name(), ": ", where,
            ": expected a type of value from 0 to 12, not an array of arrays, found ", value.type);
    value.offset = header.offset();
    if (value.type != kString) {
        header.take(value.count, kTypes[value.type].bytes, where);
        return value;
    }
    header.expect(value.count, sizeof(uint64_t), where);
    for (uint64_t i = 0; i < value.count; ++i) header.text(where);
    return value;
}

size_t GgufFile::alignment() const {
    const std::string key = "general.alignment";
    if (!has(key)) return kDefaultAlignment;
    const int64_t bytes = integer(key, 8, kMaxAlignment);
    require((bytes & (bytes - 1)) == 0, name(), ": key '", key, "': expected a power of 2, found ",
            bytes);
    return static_cast<size_t>(bytes);
}

namespace {

// What the file says of a tensor.
struct Described {
    std::string name;
    Tensor tensor;                // without its data
    uint64_t begin = 0, end = 0;  // in the data
};

// A description as it stands in the header; its dimensions are turned around.
Described read_description(GgufHeader& header, const std::string& which, const std::string& file) {
    Described d;
    d.name = header.name(which);
    const std::string what = concat("tensor '", d.name, "'"), where = concat(file, ": ", what);
    const auto rank = header.read<uint32_t>(what);
    require(rank >= 1 && rank <= Tensor::kMaxRank, where, ": expected 1 to ", Tensor::kMaxRank,
            " dimensions, found ", rank);
    d.tensor.rank = static_cast<int>(rank);
    uint64_t values = 1;
    for (uint32_t i = rank; i-- > 0;) {
        const auto dim = header.read<uint64_t>(what);
        require(dim >= 1 && !__builtin_mul_overflow(values, dim, &values) && values <= INT64_MAX,
                where, ": expected dimensions from 1 on whose product fits 63 bits, found ", dim);
        d.tensor.shape[i] = static_cast<int64_t>(dim);
    }
    d.tensor.dtype = ggml_dtype(header.read<uint32_t>(what), where);
    const BlockSize block = block_size(d.tensor.dtype);
    require(d.tensor.dim(-1) % block.values == 0, where, ": expected rows in whole blocks of ",
            block.values, ", found ", d.tensor);
    uint64_t bytes = 0;
    d.begin = header.read<uint64_t>(what);
    const bool fits = !__builtin_mul_overflow(values / static_cast<uint64_t>(block.values),
                                              static_cast<uint64_t>(block.bytes), &bytes) &&
                      !__builtin_add_overflow(d.begin, bytes, &d.end);
    require(fits, where, ": its size overflows");
    return d;
}

}  // namespace

void GgufFile::read_tensors(GgufHeader& header, uint64_t count) {
    std::vector<Described> all;
    header.expect(count, kLeastTensor, "the tensors");
    for (uint64_t i = 0; i < count; ++i)
        all.push_back(read_description(header, concat("tensor ", i, " of ", count), name()));
    const size_t align = alignment(), begin = (header.offset() + align - 1) / align * align;
    const size_t held = file_.size() > begin ? file_.size() - begin : 0;
    std::sort(all.begin(), all.end(),
              [](const Described& a, const Described& b) { return a.begin < b.begin; });
    const Described* before = nullptr;
    for (Described& d : all) {
        const std::string where = concat(name(), ": tensor '", d.name, "'");
        require(d.begin % align == 0, where, ": expected an offset in whole units of ", align,
                " bytes, found ", d.begin);
        require(d.end <= held, where, ": its ", d.end - d.begin, " bytes end at ", d.end,
                " of the data, the file holds ", held, " (truncated?)");
        require(!before || before->end <= d.begin, where, ": begins at ", d.begin,
                " of the data, where '", before ? before->name : "", "' lies to ",
                before ? before->end : 0);
        d.tensor.data = const_cast<std::byte*>(file_.data()) + begin + d.begin;
        require(tensors_.emplace(d.name, d.tensor).second, where, ": stands twice");
        before = &d;
    }
}

template <class T>
T GgufFile::at(size_t offset) const {
    T value;
    std::memcpy(&value, file_.data() + offset, sizeof value);
    return value;
}

const GgufFile::Value& GgufFile::value(const std::string& key, bool array, bool (*fits)(uint32_t),
                                       const char* expected) const {
    const auto found = values_.find(key);
    require(found != values_.end(), name(), ": expected the key '", key, "', found none");
    const Value& value = found->second;
    require(value.array == array && fits(value.type), name(), ": key '", key, "': expected ",
            expected, ", found ", value.array ? "an array of " : "", kTypes[value.type].name);
    return value;
}

std::string_view GgufFile::text(const std::string& key) const {
    const size_t offset = value(key, false, is_text, "a string").offset;
    return {reinterpret_cast<const char*>(file_.data()) + offset + 8,
            static_cast<size_t>(at<uint64_t>(offset))};
}

// One beyond 63 bits is the largest that fits.
int64_t GgufFile::integer_at(size_t offset, uint32_t type) const {
    switch (type) {
        case kU8:
            return at<uint8_t>(offset);
        case kI8:
            return at<int8_t>(offset);
        case kU16:
            return at<uint16_t>(offset);
        case kI16:
            return at<int16_t>(offset);
        case kU32:
            return at<uint32_t>(offset);
        case kI32:
            return at<int32_t>(offset);
        case kU64:
            return static_cast<int64_t>(std::min<uint64_t>(at<uint64_t>(offset), INT64_MAX));
        default:
            return at<int64_t>(offset);
    }
}

int64_t GgufFile::integer(const std::string& key, int64_t min, int64_t max) const {
    const Value& found = value(key, false, is_integer, "a whole number");
    const int64_t number = integer_at(found.offset, found.type);
    require(number >= min && number <= max, name(), ": key '", key,
            "': expected a whole number from ", min, " to ", max, ", found ", number);
    return number;
}

double GgufFile::number(const std::string& key) const {
    const Value& found = value(key, false, is_number, "a number");
    return found.type == kF32 ? at<float>(found.offset) : at<double>(found.offset);
}

bool GgufFile::boolean(const std::string& key) const {
    return at<uint8_t>(value(key, false, is_boolean, "true or false").offset) != 0;
}

std::vector<std::string_view> GgufFile::texts(const std::string& key) const {
    const Value& found = value(key, true, is_text, "an array of strings");
    std::vector<std::string_view> texts;
    size_t offset = found.offset;
    for (uint64_t i = 0; i < found.count; ++i) {
        const auto bytes = static_cast<size_t>(at<uint64_t>(offset));
        texts.emplace_back(reinterpret_cast<const char*>(file_.data()) + offset + 8, bytes);
        offset += 8 + bytes;
    }
    return texts;
}

std::vector<int64_t> GgufFile::integers(const std::string& key) const {
    const Value& found = value(key, true, is_integer, "an array of whole numbers");
    std::vector<int64_t> numbers;
    for (uint64_t i = 0; i < found.count; ++i)
        numbers.push_back(integer_at(
            found.offset + static_cast<size_t>(i) * kTypes[found.type].bytes, found.type));
    return numbers;
}

void GgufFile::forget(const Tensor& tensor) const {
    const auto* from = static_cast<const std::byte*>(tensor.data);
    file_.forget(static_cast<size_t>(from - file_.data()), tensor.bytes());
}

}  // namespace hark
