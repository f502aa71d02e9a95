#include "gpt/embed/vector_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/error.h"
#include "core/shortest.h"
#include "gpt/answers/answer_line.h"
#include "gpt/embed/nearest.h"

namespace hark::gpt {
namespace {

// The line's metadata, and its further keys.
std::string line_of(const EmbeddedText& text, const std::string& more) {
    std::string line = text.text.metadata;
    line.back() = ',';  // instead of the brace that ends it
    return line +
           concat("\"index\":", text.index, ",\"prompt_tokens\":", text.tokens, ",", more, "}\n");
}

std::string vector_of(const EmbeddedText& text) {
    std::string values;
    for (const float x : text.vector) values += (values.empty() ? "" : ",") + shortest(x);
    return "\"embedding\":[" + values + "]";
}

std::string matches_of(const std::vector<Match>& matches) {
    std::string values;
    for (const Match& match : matches)
        values += concat(values.empty() ? "" : ",", "{\"row\":", match.row,
                         ",\"score\":", shortest(match.score), "}");
    return "\"nearest\":[" + values + "]";
}

}  // namespace

VectorWriter::VectorWriter(const VectorOutput& output, ByteWriter& out)
    : output_(output), out_(out) {
    if (output.nearest.empty()) return;
    rows_ = ::open(output.nearest.c_str(), O_RDONLY | O_CLOEXEC);
    require(rows_ >= 0, output.nearest, ": cannot open: ", std::strerror(errno));
}

VectorWriter::~VectorWriter() {
    if (rows_ >= 0) ::close(rows_);
}

void VectorWriter::add(EmbeddedText text) {
    if (rows_ >= 0) return kept_.push_back(std::move(text));
    if (output_.form == VectorForm::f32)
        out_.write(text.vector.data(), text.vector.size() * sizeof(float));
    else if (text.text.error.empty())
        out_.write(line_of(text, vector_of(text)));
    else
        out_.write(error_line(text.text));
}

void VectorWriter::finish() {
    if (kept_.empty()) return out_.flush();
    ByteReader rows(rows_, output_.nearest);
    std::vector<std::vector<float>> vectors;
    for (const EmbeddedText& text : kept_) vectors.push_back(text.vector);
    const auto matches = nearest_rows(rows, vectors, output_.matches);
    for (size_t i = 0; i < kept_.size(); ++i) {
        if (output_.form == VectorForm::tsv)
            for (const Match& match : matches[i])
                out_.write(
                    concat(kept_[i].index, "\t", match.row, "\t", shortest(match.score), "\n"));
        else if (kept_[i].text.error.empty())
            out_.write(line_of(kept_[i], matches_of(matches[i])));
        else
            out_.write(error_line(kept_[i].text));
    }
    out_.flush();
}

}  // namespace hark::gpt
