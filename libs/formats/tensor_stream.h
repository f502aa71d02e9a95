// The tensor stream: safetensors documents, one after another, until end of file.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/files/io.h"
#include "formats/safetensors.h"

namespace hark {

// One document with the memory of its tensors. Copies share the memory.
struct Document {
    SafetensorsHeader header;
    std::shared_ptr<std::vector<std::byte>> data;
    std::string where;  // "stdin: document 3", for messages

    // Throws Error if the document has no such tensor.
    Tensor tensor(const std::string& name) const;
    const TensorEntry* find(const std::string& name) const;
    // Adds a tensor after the others; its values are copied.
    void add(const std::string& name, const Tensor& tensor);
};

class TensorStreamReader {
  public:
    explicit TensorStreamReader(ByteReader& in) : in_(in) {}

    // Returns nullopt at the end of the stream. Throws Error naming the document: a header over 1
    // MiB or not JSON, wrong offsets, a stream that ends inside a document. Memory grows only with
    // the bytes that have arrived, whatever a header promises.
    std::optional<Document> next();
    // The same without the data, whose header.data_bytes the caller reads from the stream itself
    // before the next call.
    std::optional<Document> next_header();
    // Whether the bytes that were read last do not begin as a document does.
    bool foreign() const { return foreign_; }

  private:
    ByteReader& in_;
    bool foreign_ = false;
    int64_t count_ = 0;
};

void write_document(ByteWriter& out, const Document& document);

}  // namespace hark
