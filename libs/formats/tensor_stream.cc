#include "formats/tensor_stream.h"

#include <algorithm>
#include <cstring>

#include "core/error.h"

namespace hark {
namespace {

constexpr uint64_t kMaxStreamHeader = uint64_t{1} << 20;
constexpr size_t kReadStep = size_t{1} << 22;

}  // namespace

const TensorEntry* Document::find(const std::string& name) const {
    for (const TensorEntry& entry : header.tensors)
        if (entry.name == name) return &entry;
    return nullptr;
}

Tensor Document::tensor(const std::string& name) const {
    const TensorEntry* entry = find(name);
    require(entry != nullptr, where, ": no tensor '", name, "'");
    return tensor_of(*entry, data->data() + entry->begin, where);
}

void Document::add(const std::string& name, const Tensor& tensor) {
    if (!data) data = std::make_shared<std::vector<std::byte>>();
    TensorEntry entry;
    entry.name = name;
    entry.dtype = safetensors_name(tensor.dtype);
    entry.shape.assign(tensor.shape.begin(), tensor.shape.begin() + tensor.rank);
    entry.begin = header.data_bytes;
    entry.end = entry.begin + tensor.bytes();
    header.data_bytes = entry.end;
    header.tensors.push_back(entry);
    const std::byte* bytes = static_cast<const std::byte*>(tensor.data);
    data->insert(data->end(), bytes, bytes + tensor.bytes());
}

std::optional<Document> TensorStreamReader::next_header() {
    Document document;
    document.where = concat(in_.name(), ": document ", count_ + 1);
    const std::string& where = document.where;
    unsigned char field[8];
    const size_t got = in_.read(field, 8);
    if (got == 0) return std::nullopt;
    require(got == 8, where, ": the stream ends inside the header's length");
    foreign_ = true;
    uint64_t length = 0;
    for (int i = 7; i >= 0; --i) length = length << 8 | field[i];
    require(length <= kMaxStreamHeader, where, ": this is no tensor stream (got a header of ",
            length, " bytes, expected at most ", kMaxStreamHeader, ")");
    std::string json(static_cast<size_t>(length), '\0');
    const size_t came = in_.read(json.data(), json.size());
    // The first byte tells another kind of input from a stream that was cut.
    foreign_ = came > 0 && json[0] != '{';
    require(came == length || foreign_, where, ": the stream ends inside the header");
    foreign_ = true;
    document.header = parse_safetensors_header(json, where);
    foreign_ = false;
    ++count_;
    return document;
}

std::optional<Document> TensorStreamReader::next() {
    std::optional<Document> document = next_header();
    if (!document) return std::nullopt;
    const uint64_t total = document->header.data_bytes;
    document->data = std::make_shared<std::vector<std::byte>>();
    std::vector<std::byte>& data = *document->data;
    while (data.size() < total) {
        // Doubling keeps the memory below twice the bytes that have arrived.
        const size_t have = data.size();
        const size_t step =
            static_cast<size_t>(std::min<uint64_t>(total - have, std::max(kReadStep, have)));
        data.resize(have + step);
        const size_t read = in_.read(data.data() + have, step);
        require(read == step, document->where, ": the stream ends inside the document (got ",
                have + read, " bytes of data, expected ", total, ")");
    }
    return document;
}

void write_document(ByteWriter& out, const Document& document) {
    out.write(format_safetensors_header(document.header));
    if (document.data) out.write(document.data->data(), document.data->size());
}

}  // namespace hark
