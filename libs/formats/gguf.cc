#include "formats/gguf.h"

#include <algorithm>
#include <cstring>

#include "core/error.h"
#include "formats/ggml.h"
#include "formats/gguf_value.h"

namespace hark {
namespace {

// Large vocabularies take 20 MB.
constexpr size_t kMaxHeader = size_t{64} << 20;
constexpr size_t kMaxName = 65535;
constexpr size_t kLeastKey = 8 + 4 + 1, kLeastTensor = 8 + 4 + 8 + 4 + 8;  // bytes of one
constexpr int64_t kDefaultAlignment = 32, kMaxAlignment = 1 << 16;

struct TypeInfo {
    const char* name;
    size_t bytes;  // 0: not of one size
};
constexpr TypeInfo kValueTypes[] = {
    {"u8", 1},   {"i8", 1},     {"u16", 2},   {"i16", 2}, {"u32", 4}, {"i32", 4}, {"f32", 4},
    {"bool", 1}, {"string", 0}, {"array", 0}, {"u64", 8}, {"i64", 8}, {"f64", 8}};

bool is_integer(uint32_t type) {
    return type <= gguf_value::i32 || type == gguf_value::u64 || type == gguf_value::i64;
}
bool is_number(uint32_t type) { return type == gguf_value::f32 || type == gguf_value::f64; }
bool is_text(uint32_t type) { return type == gguf_value::text; }
bool is_boolean(uint32_t type) { return type == gguf_value::boolean; }

// Throws where `count` values of `bytes` each, or more, cannot follow.
void expect(const ByteCursor& header, uint64_t count, size_t bytes) {
    uint64_t all = 0;
    if (__builtin_mul_overflow(count, uint64_t{bytes}, &all) || all > header.left())
        fail(header.place(), ": expected at most ", header.left(),
             " bytes, which is what is left of the file, found ", count,
             bytes == 1 ? "" : concat(" values of ", bytes));
    if (all + header.at() > kMaxHeader)
        fail(header.place(), ": expected a header of at most ", kMaxHeader, " bytes, found one of ",
             header.at() + all, " or more");
}

std::string_view read_text(ByteCursor& header) {
    const auto bytes = header.number<uint64_t>();
    expect(header, bytes, 1);
    return header.take(bytes);
}

std::string read_name(ByteCursor& header) {
    const std::string_view name = read_text(header);
    require(name.size() <= kMaxName, header.place(), ": expected at most ", kMaxName,
            " bytes, found ", name.size());
    return std::string(name);
}

}  // namespace

GgufFile::GgufFile(const std::filesystem::path& path) : GgufFile(path, Alone{}) {
    open_parts(path);
}

GgufFile::GgufFile(const std::filesystem::path& path, Alone) : file_(path) {
    ByteCursor header(file_.text(), name());
    header.what = "the magic";
    require(header.take(kGgufMagic.size()) == kGgufMagic, name(), ": expected a GGUF file, which ",
            "begins with ", kGgufMagic, ", found another");
    header.what = "the version";
    const auto version = header.number<uint32_t>();
    require(version == 2 || version == 3, name(), ": expected version 2 or 3 of GGUF, ",
            "little-endian, found ", version);
    header.what = "the keys";
    const auto tensors = header.number<uint64_t>(), keys = header.number<uint64_t>();
    expect(header, keys, kLeastKey);
    for (uint64_t i = 0; i < keys; ++i) {
        header.what = concat("key ", i, " of ", keys);
        const std::string key = read_name(header);
        header.what = concat("key '", key, "'");
        require(values_.emplace(key, read_value(header)).second, name(), ": the key '", key,
                "' is there twice");
    }
    read_tensors(header, tensors);
}

GgufFile::Value GgufFile::read_value(ByteCursor& header) {
    Value value{.type = header.number<uint32_t>()};
    if (value.type == gguf_value::array) {
        value.array = true;
        value.type = header.number<uint32_t>();
        value.count = header.number<uint64_t>();
    }
    require(value.type <= gguf_value::f64 && value.type != gguf_value::array, header.place(),
            ": expected a type of value from 0 to 12, not an array of arrays, found ", value.type);
    value.offset = header.at();
    const size_t bytes = kValueTypes[value.type].bytes;
    expect(header, value.count, value.type == gguf_value::text ? sizeof(uint64_t) : bytes);
    if (value.type != gguf_value::text) header.take(value.count * bytes);
    for (uint64_t i = 0; value.type == gguf_value::text && i < value.count; ++i) read_text(header);
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

// A description as the header has it; its dimensions are turned around.
Described read_description(ByteCursor& header) {
    Described d;
    d.name = read_name(header);
    header.what = concat("tensor '", d.name, "'");
    const std::string where = header.place();
    const auto rank = header.number<uint32_t>();
    require(rank >= 1 && rank <= Tensor::kMaxRank, where, ": expected 1 to ", Tensor::kMaxRank,
            " dimensions, found ", rank);
    d.tensor.rank = static_cast<int>(rank);
    uint64_t values = 1;
    for (uint32_t i = rank; i-- > 0;) {
        const auto dim = header.number<uint64_t>();
        require(dim >= 1 && !__builtin_mul_overflow(values, dim, &values) && values <= INT64_MAX,
                where, ": expected dimensions from 1 on whose product fits 63 bits, found ", dim);
        d.tensor.shape[i] = static_cast<int64_t>(dim);
    }
    d.tensor.dtype = ggml_dtype(header.number<uint32_t>(), where);
    const BlockSize block = block_size(d.tensor.dtype);
    require(d.tensor.dim(-1) % block.values == 0, where, ": expected rows in whole blocks of ",
            block.values, ", found ", d.tensor);
    uint64_t bytes = 0;
    d.begin = header.number<uint64_t>();
    const bool fits = !__builtin_mul_overflow(values / static_cast<uint64_t>(block.values),
                                              static_cast<uint64_t>(block.bytes), &bytes) &&
                      !__builtin_add_overflow(d.begin, bytes, &d.end);
    require(fits, where, ": its size overflows");
    return d;
}

}  // namespace

void GgufFile::read_tensors(ByteCursor& header, uint64_t count) {
    std::vector<Described> all;
    header.what = "the tensors";
    expect(header, count, kLeastTensor);
    for (uint64_t i = 0; i < count; ++i) {
        header.what = concat("tensor ", i, " of ", count);
        all.push_back(read_description(header));
    }
    const size_t align = alignment(), begin = (header.at() + align - 1) / align * align;
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
                " of the data, where '", before ? before->name : "", "' ends at ",
                before ? before->end : 0);
        d.tensor.data = const_cast<std::byte*>(file_.data()) + begin + d.begin;
        require(tensors_.emplace(d.name, d.tensor).second, where, ": is there twice");
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
            expected, ", found ", value.array ? "an array of " : "", kValueTypes[value.type].name);
    return value;
}

std::string_view GgufFile::text(const std::string& key) const {
    const size_t offset = value(key, false, is_text, "a string").offset;
    return file_.text().substr(offset + 8, static_cast<size_t>(at<uint64_t>(offset)));
}

// One beyond 63 bits is the largest that fits.
int64_t GgufFile::integer_at(size_t offset, uint32_t type) const {
    switch (type) {
        case gguf_value::u8:
            return at<uint8_t>(offset);
        case gguf_value::i8:
            return at<int8_t>(offset);
        case gguf_value::u16:
            return at<uint16_t>(offset);
        case gguf_value::i16:
            return at<int16_t>(offset);
        case gguf_value::u32:
            return at<uint32_t>(offset);
        case gguf_value::i32:
            return at<int32_t>(offset);
        case gguf_value::u64:
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
    return found.type == gguf_value::f32 ? at<float>(found.offset) : at<double>(found.offset);
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
        texts.push_back(file_.text().substr(offset + 8, bytes));
        offset += 8 + bytes;
    }
    return texts;
}

std::vector<bool> GgufFile::booleans(const std::string& key) const {
    const Value& found = value(key, true, is_boolean, "an array of true and false");
    std::vector<bool> booleans;
    for (uint64_t i = 0; i < found.count; ++i)
        booleans.push_back(at<uint8_t>(found.offset + static_cast<size_t>(i)) != 0);
    return booleans;
}

std::vector<int64_t> GgufFile::integers(const std::string& key) const {
    const Value& found = value(key, true, is_integer, "an array of whole numbers");
    std::vector<int64_t> numbers;
    for (uint64_t i = 0; i < found.count; ++i)
        numbers.push_back(integer_at(
            found.offset + static_cast<size_t>(i) * kValueTypes[found.type].bytes, found.type));
    return numbers;
}

std::vector<double> GgufFile::numbers(const std::string& key) const {
    const Value& found = value(key, true, is_number, "an array of numbers");
    std::vector<double> numbers;
    for (uint64_t i = 0; i < found.count; ++i) {
        const size_t offset = found.offset + static_cast<size_t>(i) * kValueTypes[found.type].bytes;
        numbers.push_back(found.type == gguf_value::f32 ? at<float>(offset) : at<double>(offset));
    }
    return numbers;
}

bool GgufFile::holds(const void* at) const {
    return file_.holds(at) || std::any_of(parts_.begin(), parts_.end(),
                                          [&](const auto& part) { return part->holds(at); });
}

void GgufFile::forget(const Tensor& tensor) const {
    const auto* from = static_cast<const std::byte*>(tensor.data);
    const MappedFile& file = part_of(tensor).file_;
    file.forget(static_cast<size_t>(from - file.data()), tensor.bytes());
}

}  // namespace hark
