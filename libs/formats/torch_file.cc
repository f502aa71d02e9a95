#include "formats/torch_file.h"

#include <algorithm>
#include <array>

#include "core/error.h"

namespace hark {
namespace {

using Kind = PickleValue::Kind;

constexpr const char* kTensor = "torch._utils _rebuild_tensor_v2";
constexpr const char* kParameter = "torch._utils _rebuild_parameter";
constexpr const char* kPickle = "/data.pkl";
constexpr size_t kMaxRank = 8;

struct StorageType {
    const char* name;
    const char* dtype;  // safetensors' name
    int64_t bytes;
};

constexpr StorageType kStorages[] = {
    {"torch FloatStorage", "F32", 4},     {"torch HalfStorage", "F16", 2},
    {"torch BFloat16Storage", "BF16", 2}, {"torch DoubleStorage", "F64", 8},
    {"torch LongStorage", "I64", 8},      {"torch IntStorage", "I32", 4},
    {"torch ShortStorage", "I16", 2},     {"torch CharStorage", "I8", 1},
    {"torch ByteStorage", "U8", 1},       {"torch BoolStorage", "BOOL", 1}};

const StorageType& storage_type(const std::string& name, const std::string& at) {
    for (const StorageType& type : kStorages)
        if (name == type.name) return type;
    fail(at, ": expected a storage, found '", name, "'");
}

std::set<std::string> known_globals() {
    std::set<std::string> names = {"collections OrderedDict", kTensor, kParameter};
    for (const StorageType& type : kStorages) names.insert(type.name);
    return names;
}

// Tied tensors are one another's twins; anything between that and apart is no file of torch's.
void check_overlaps(const std::map<std::string, TensorEntry>& tensors, const std::string& where) {
    std::vector<const TensorEntry*> sorted;
    for (const auto& [name, entry] : tensors) sorted.push_back(&entry);
    std::sort(sorted.begin(), sorted.end(), [](const TensorEntry* a, const TensorEntry* b) {
        return std::tie(a->begin, a->end) < std::tie(b->begin, b->end);
    });
    for (size_t i = 1; i < sorted.size(); ++i) {
        const TensorEntry &before = *sorted[i - 1], &entry = *sorted[i];
        require(
            before.end <= entry.begin || (before.begin == entry.begin && before.end == entry.end),
            where, ": tensor '", entry.name, "' at bytes ", entry.begin, " to ", entry.end,
            " overlaps '", before.name, "' at ", before.begin, " to ", before.end);
    }
}

}  // namespace

TorchFile::TorchFile(const std::filesystem::path& path)
    : file_(path), members_(stored_members(bytes(), file_.name())), pickle_(read_pickle()) {
    const auto order = members_.find(folder_ + "byteorder");
    if (order == members_.end()) return;
    const std::string_view found = bytes().substr(order->second.offset, order->second.bytes);
    require(found == "little", file_.name(), ": expected numbers in little-endian order, found '",
            found.substr(0, 20), "'");
}

std::string_view TorchFile::bytes() const { return file_.text(); }

Pickle TorchFile::read_pickle() {
    const auto found = std::find_if(members_.begin(), members_.end(), [](const auto& member) {
        return member.first.ends_with(kPickle);
    });
    require(found != members_.end(), file_.name(),
            ": expected an archive of torch.save, found a zip archive without data.pkl");
    folder_ = found->first.substr(0, found->first.size() - std::string_view(kPickle).size() + 1);
    return Pickle(bytes().substr(found->second.offset, found->second.bytes), known_globals(),
                  concat(file_.name(), ": ", found->first));
}

const PickleValue& TorchFile::dictionary(const std::string& key) const {
    const PickleValue* found = pickle_.find(pickle_.root(), key);
    require(found && found->kind == Kind::dict, file_.name(), ": expected a dictionary '", key,
            "', found ", found ? "something else" : "none");
    return *found;
}

std::map<std::string, int64_t> TorchFile::numbers(const std::string& key) const {
    const PickleValue& dict = dictionary(key);
    std::map<std::string, int64_t> numbers;
    for (size_t i = 0; i < dict.items.size(); i += 2) {
        const PickleValue &name = pickle_[dict.items[i]], &value = pickle_[dict.items[i + 1]];
        require(name.kind == Kind::text && value.kind == Kind::number, file_.name(), ": '", key,
                "': expected whole numbers by their names, found ",
                name.kind == Kind::text ? "something else as '" + name.text + "'" : "another key");
        numbers[name.text] = value.number;
    }
    return numbers;
}

std::map<std::string, TensorEntry> TorchFile::tensors(const std::string& key) const {
    const PickleValue& dict = dictionary(key);
    std::map<std::string, TensorEntry> tensors;
    for (size_t i = 0; i < dict.items.size(); i += 2) {
        const PickleValue& name = pickle_[dict.items[i]];
        require(name.kind == Kind::text, file_.name(), ": '", key,
                "': expected tensors by their names, found another key");
        TensorEntry entry = tensor_of_value(pickle_[dict.items[i + 1]],
                                            concat(file_.name(), ": tensor '", name.text, "'"));
        entry.name = name.text;
        tensors[name.text] = std::move(entry);
    }
    check_overlaps(tensors, file_.name());
    return tensors;
}

const PickleValue& TorchFile::argument(const PickleValue& call, size_t i, Kind kind,
                                       const std::string& at) const {
    const PickleValue& arguments = pickle_[call.items[0]];
    const bool fits = i < arguments.items.size() && pickle_[arguments.items[i]].kind == kind;
    require(fits, at, ": expected another argument ", i, " than torch's",
            call.text.empty() ? " storage" : " " + call.text, " has here");
    return pickle_[arguments.items[i]];
}

std::vector<int64_t> TorchFile::whole_numbers(const PickleValue& tuple,
                                              const std::string& at) const {
    require(tuple.items.size() <= kMaxRank, at, ": expected at most ", kMaxRank,
            " dimensions, found ", tuple.items.size());
    std::vector<int64_t> numbers;
    for (const uint32_t item : tuple.items) {
        require(pickle_[item].kind == Kind::number && pickle_[item].number >= 0, at,
                ": expected whole numbers from 0 on as its shape and strides");
        numbers.push_back(pickle_[item].number);
    }
    return numbers;
}

// The persistent id ('storage', type, key, device, count).
TorchFile::Storage TorchFile::storage_of(const PickleValue& value, const std::string& at) const {
    require(pickle_[value.items[0]].kind == Kind::tuple, at, ": expected a storage");
    const StorageType& type = storage_type(argument(value, 1, Kind::global, at).text, at);
    const std::string& key = argument(value, 2, Kind::text, at).text;
    const int64_t count = argument(value, 4, Kind::number, at).number;
    const auto member = members_.find(folder_ + "data/" + key);
    require(member != members_.end(), at, ": expected a member '", folder_, "data/", key,
            "', found none");
    uint64_t bytes = 0;
    require(count >= 0 && !__builtin_mul_overflow(count, type.bytes, &bytes) &&
                bytes == member->second.bytes,
            at, ": its storage '", key, "' is said to have ", count, " values of ", type.dtype,
            ", and has ", member->second.bytes, " bytes");
    return {type.dtype, member->second, type.bytes};
}

TensorEntry TorchFile::tensor_of_value(const PickleValue& value, const std::string& at) const {
    require(value.kind == Kind::call, at, ": expected a tensor, found something else");
    const PickleValue& call = value.text == kParameter ? argument(value, 0, Kind::call, at) : value;
    require(call.text == kTensor, at, ": expected a tensor, found '", call.text, "'");
    const Storage storage = storage_of(argument(call, 0, Kind::persistent, at), at);
    const int64_t offset = argument(call, 1, Kind::number, at).number;
    TensorEntry entry;
    entry.dtype = storage.dtype;
    entry.shape = whole_numbers(argument(call, 2, Kind::tuple, at), at);
    const std::vector<int64_t> strides = whole_numbers(argument(call, 3, Kind::tuple, at), at);
    require(strides.size() == entry.shape.size(), at, ": expected a stride for each dimension");
    const int64_t held = static_cast<int64_t>(storage.place.bytes) / storage.width;
    int64_t size = 1;
    bool contiguous = true;
    for (size_t i = entry.shape.size(); i-- > 0;) {
        require(entry.shape[i] > 0, at, ": expected values, found none of them");
        contiguous = contiguous && (entry.shape[i] == 1 || strides[i] == size);
        require(!__builtin_mul_overflow(size, entry.shape[i], &size) && size <= held, at,
                ": is larger than its storage of ", held, " values");
    }
    require(contiguous, at,
            ": its values are not in the order of its dimensions; call contiguous() on it before "
            "torch.save");
    require(offset >= 0 && offset <= held - size, at, ": values ", offset, " to ", offset, " + ",
            size, " are outside its storage of ", held);
    entry.begin = storage.place.offset + static_cast<uint64_t>(offset * storage.width);
    entry.end = entry.begin + static_cast<uint64_t>(size * storage.width);
    require(entry.begin % static_cast<uint64_t>(storage.width) == 0, at, ": begins at byte ",
            entry.begin, ", which is no multiple of the ", storage.width, " bytes of its numbers");
    return entry;
}

Tensor TorchFile::tensor(const TensorEntry& entry) const {
    return tensor_of(entry, file_.data() + entry.begin, file_.name());
}

}  // namespace hark
