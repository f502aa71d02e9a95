#include "gpt/eval/hellaswag.h"

#include <algorithm>
#include <cstring>

#include "core/error.h"
#include "core/files/files.h"

namespace hark::gpt {
namespace {

constexpr size_t kEvaluationHeader = 1024;
constexpr int32_t kMagic = 20240522, kVersion = 1;
constexpr int64_t kExampleMark = 65535;  // before each example
constexpr int64_t kCompletions = 4;

// Reads the 16-bit numbers after the header.
class Uint16Reader {
  public:
    Uint16Reader(std::string_view bytes, std::string where, int64_t n_vocab)
        : bytes_(bytes), where_(std::move(where)), n_vocab_(n_vocab) {}

    int64_t next(const char* what) {
        require(at_ + 2 <= bytes_.size(), where_, ": example ", example, ": expected ", what,
                ", found the file's end");
        uint16_t value;
        std::memcpy(&value, bytes_.data() + at_, sizeof value);
        at_ += sizeof value;
        return value;
    }
    int64_t expect(const char* what, int64_t min, int64_t max) {
        const int64_t value = next(what);
        require(value >= min && value <= max, where_, ": example ", example, ": ", what,
                ": expected ", min, min == max ? "" : concat(" to ", max), ", found ", value);
        return value;
    }
    std::vector<int32_t> tokens(const char* what) {
        std::vector<int32_t> ids(static_cast<size_t>(expect(what, 1, kExampleMark)));
        for (int32_t& id : ids) {
            id = static_cast<int32_t>(next("a token"));
            require(id < n_vocab_, where_, ": example ", example, ": the id ", id,
                    " is over the vocabulary of ", n_vocab_);
        }
        return ids;
    }
    void require_bytes(int64_t found, int64_t said) const {
        require(found == said, where_, ": example ", example, ": its contents take ", found,
                " bytes, but it says ", said);
    }
    size_t at() const { return at_; }

    int64_t example = 0;

  private:
    std::string_view bytes_;
    std::string where_;
    int64_t n_vocab_;
    size_t at_ = kEvaluationHeader;
};

int64_t examples_of(std::string_view bytes, const std::string& where) {
    require(bytes.size() >= kEvaluationHeader, where,
            ": expected an evaluation file with a header of ", kEvaluationHeader, " bytes, found ",
            bytes.size(), " bytes in all");
    int32_t fields[3];
    std::memcpy(fields, bytes.data(), sizeof fields);
    require(fields[0] == kMagic, where, ": expected an evaluation file, which begins with ", kMagic,
            ", found ", fields[0]);
    require(fields[1] == kVersion, where, ": expected version ", kVersion,
            " of the evaluation format, found ", fields[1]);
    require(fields[2] > 0, where, ": expected 1 example or more, found ", fields[2]);
    return fields[2];
}

ChoiceQuestion read_example(Uint16Reader& reader) {
    ChoiceQuestion example;
    const size_t begin = reader.at();
    reader.expect("the number that begins an example", kExampleMark, kExampleMark);
    const int64_t bytes = reader.next("its bytes");
    // Not checked: a part of a longer file may keep that file's indices.
    reader.next("its index");
    example.label = reader.expect("its label", 0, kCompletions - 1);
    reader.expect("its completions", kCompletions, kCompletions);
    example.context = reader.tokens("its context's tokens");
    for (int64_t i = 0; i < kCompletions; ++i)
        example.choices.push_back(reader.tokens("a completion's tokens"));
    reader.require_bytes(static_cast<int64_t>(reader.at() - begin), bytes);
    return example;
}

}  // namespace

HellaSwag::HellaSwag(const std::filesystem::path& path, int64_t n_vocab, int64_t n_positions)
    : HellaSwag(read_file(path), path.string(), n_vocab, n_positions) {}

HellaSwag::HellaSwag(std::string_view bytes, const std::string& where, int64_t n_vocab,
                     int64_t n_positions)
    : n_positions_(n_positions) {
    const int64_t count = examples_of(bytes, where);
    Uint16Reader reader(bytes, where, n_vocab);
    for (; reader.example < count; ++reader.example) {
        examples_.push_back(read_example(reader));
        require(examples_.back().longest() <= n_positions, where, ": example ", reader.example,
                ": expected a context and completions for ", n_positions,
                " positions, the model's, found ", examples_.back().longest());
    }
    require(reader.at() == bytes.size(), where, ": its header counts ", count,
            " examples, which end after ", reader.at(), " bytes; found ", bytes.size());
}

std::vector<std::vector<double>> HellaSwag::losses(int64_t rows, const RowLosses& losses) const {
    std::vector<std::vector<double>> all;
    for (const auto& of_one : choice_losses(examples_, rows, n_positions_, losses)) {
        std::vector<double>& means = all.emplace_back();
        for (const ChoiceLoss& loss : of_one) means.push_back(loss.mean());
    }
    return all;
}

void HellaSwag::keep_share(int rank, int ranks) {
    std::vector<ChoiceQuestion> share;
    for (auto i = static_cast<size_t>(rank); i < examples_.size(); i += static_cast<size_t>(ranks))
        share.push_back(std::move(examples_[i]));
    examples_ = std::move(share);
}

int64_t HellaSwag::right(const std::vector<std::vector<double>>& losses) const {
    int64_t right = 0;
    for (size_t i = 0; i < losses.size(); ++i) {
        const auto least = std::min_element(losses[i].begin(), losses[i].end());
        right += least - losses[i].begin() == examples_[i].label;
    }
    return right;
}

double HellaSwag::accuracy(const std::vector<std::vector<double>>& losses) const {
    return static_cast<double>(right(losses)) / static_cast<double>(losses.size());
}

}  // namespace hark::gpt
