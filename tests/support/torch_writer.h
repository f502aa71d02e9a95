// Writes what torch.save writes: a zip of stored members, and a pickle of protocol 2 in it.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace hark::test {

inline std::string little(uint64_t value, size_t bytes) {
    std::string text;
    for (size_t i = 0; i < bytes; ++i, value >>= 8) text += static_cast<char>(value & 0xff);
    return text;
}

using ZipMembers = std::vector<std::pair<std::string, std::string>>;

// `method` 0: stored; another number is written into the headers, the data stays as it is. With
// `zip64` the sizes are in extra fields and the directory's place in zip64's end record.
inline std::string zip_of(const ZipMembers& members, uint16_t method = 0, bool zip64 = false) {
    std::string out, directory;
    for (const auto& [name, data] : members) {
        const size_t at = out.size();
        // An extra field places the data at a multiple of 64 bytes.
        const size_t unpadded = at + 30 + name.size() + 4;
        const size_t padding = (64 - unpadded % 64) % 64;
        const std::string common = little(0, 2) + little(method, 2) + little(0, 8);
        const std::string sizes = little(data.size(), 4) + little(data.size(), 4);
        out += little(0x04034b50, 4) + little(0, 2) + common + sizes + little(name.size(), 2) +
               little(4 + padding, 2) + name + "FB" + little(padding, 2) +
               std::string(padding, 'Z') + data;
        const std::string extra = zip64 ? little(1, 2) + little(24, 2) + little(data.size(), 8) +
                                              little(data.size(), 8) + little(at, 8)
                                        : "";
        directory += little(0x02014b50, 4) + little(0, 4) + common +
                     (zip64 ? std::string(8, '\xff') : sizes) + little(name.size(), 2) +
                     little(extra.size(), 2) + little(0, 10) +
                     (zip64 ? std::string(4, '\xff') : little(at, 4)) + name + extra;
    }
    const size_t at = out.size(), end64 = at + directory.size();
    out += directory;
    if (zip64)
        out += little(0x06064b50, 4) + little(44, 8) + little(0, 12) + little(members.size(), 8) +
               little(members.size(), 8) + little(directory.size(), 8) + little(at, 8) +
               little(0x07064b50, 4) + little(0, 4) + little(end64, 8) + little(1, 4);
    const std::string place = zip64 ? std::string(12, '\xff')
                                    : little(members.size(), 2) + little(members.size(), 2) +
                                          little(directory.size(), 4) + little(at, 4);
    return out + little(0x06054b50, 4) + little(0, 4) + place + little(0, 2);
}

// Pieces of a pickle.
inline std::string pickled(int64_t number) {
    return "J" + little(static_cast<uint64_t>(number), 4);
}
inline std::string pickled(const std::string& text) { return "X" + little(text.size(), 4) + text; }
inline std::string global(const std::string& module, const std::string& name) {
    return "c" + module + "\n" + name + "\n";
}
inline std::string pickled(const std::vector<int64_t>& numbers) {
    std::string text = "(";
    for (const int64_t number : numbers) text += pickled(number);
    return text + "t";
}

struct TorchTensor {
    std::string name;
    std::string storage;  // "HalfStorage"
    std::string key;      // of the member that holds it
    int64_t count = 0;    // values of the storage
    std::vector<int64_t> shape, strides;
    int64_t offset = 0;
};

inline std::vector<int64_t> contiguous(const std::vector<int64_t>& shape) {
    std::vector<int64_t> strides(shape.size(), 1);
    for (size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
    return strides;
}

inline std::string pickled(const TorchTensor& tensor) {
    return global("torch._utils", "_rebuild_tensor_v2") + "((" + pickled("storage") +
           global("torch", tensor.storage) + pickled(tensor.key) + pickled("cpu") +
           pickled(tensor.count) + "tQ" + pickled(tensor.offset) + pickled(tensor.shape) +
           pickled(tensor.strides) + "\x89" + global("collections", "OrderedDict") + ")RtR";
}

// {"dims": {...}, "model_state_dict": OrderedDict}
inline std::string pickled(const std::vector<std::pair<std::string, int64_t>>& dims,
                           const std::vector<TorchTensor>& tensors) {
    std::string text = "\x80\x02}(" + pickled("dims") + "}(";
    for (const auto& [name, value] : dims) text += pickled(name) + pickled(value);
    text += "u" + pickled("model_state_dict") + global("collections", "OrderedDict") + ")Rq\x01(";
    for (const TorchTensor& tensor : tensors) text += pickled(tensor.name) + pickled(tensor);
    return text + "uu.";
}

}  // namespace hark::test
