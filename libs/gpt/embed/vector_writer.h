// Writes vectors of texts, or the rows of a file that are closest to them (docs/formats.md).
#pragma once

#include <string>
#include <vector>

#include "core/files/io.h"
#include "gpt/answers/prompts.h"

namespace hark::gpt {

struct EmbeddedText {
    Prompt text;  // with its error, if it has one: then the vector is NaN
    int64_t index = 0;
    size_t tokens = 0;
    std::vector<float> vector;
};

enum class VectorForm { jsonl, f32, tsv };

struct VectorOutput {
    VectorForm form = VectorForm::jsonl;
    std::string nearest;  // file of vectors; empty: the vectors themselves are written
    int64_t matches = 0;  // with a file: rows per text
};

class VectorWriter {
  public:
    // Throws Error if the file cannot be opened.
    VectorWriter(const VectorOutput& output, ByteWriter& out);
    ~VectorWriter();
    VectorWriter(const VectorWriter&) = delete;
    VectorWriter& operator=(const VectorWriter&) = delete;

    void add(EmbeddedText text);
    // After the last text. Throws Error if the file cannot be read, or has vectors of another size.
    void finish();

  private:
    VectorOutput output_;
    ByteWriter& out_;
    int rows_ = -1;                   // the file; it may be a pipe
    std::vector<EmbeddedText> kept_;  // until all can be compared with the file
};

}  // namespace hark::gpt
