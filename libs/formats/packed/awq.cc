#include "formats/packed/awq.h"

namespace hark {
namespace {

constexpr int64_t kColumns = 8;  // of a word

// Number i of words; a row's words are whole.
float awq_number(const std::byte* words, int64_t i) {
    const int64_t column = i % kColumns, shift = 4 * (column / 2 + column % 2 * 4);
    return static_cast<float>(load_value<uint32_t>(words, i / kColumns) >> shift & 15);
}

class AwqFormat : public PackedFormat {
  public:
    explicit AwqFormat(int64_t group_size) : group_size_(group_size) {}

    bool packs(const ModuleParts& parts) const override { return parts.has("qweight"); }
    PackedMatrix open(const ModuleParts& parts, int64_t rows, int64_t columns) const override {
        const int64_t size = group_size_ > 0 ? group_size_ : columns;
        parts.check(rows % kColumns == 0 && columns % size == 0, "qweight",
                    "expected a matrix (in, out) of groups of ", size, " rows and ", kColumns,
                    " columns per word, found (", columns, ", ", rows, ")");
        const int64_t groups = columns / size, words = rows / kColumns;
        const std::byte* data = parts.take("qweight", "I32", {columns, words});
        const std::byte* stored_zeros = parts.take("qzeros", "I32", {groups, words});
        FloatPart scales = parts.floats("scales", {groups, rows});
        std::vector<float> zeros(scales.values.size());
        for (size_t i = 0; i < zeros.size(); ++i)
            zeros[i] = awq_number(stored_zeros, static_cast<int64_t>(i));
        std::vector<int64_t> first_cell;  // of a column
        for (int64_t c = 0; c < columns; ++c) first_cell.push_back(c / size * rows);
        const Dtype dtype = scales.dtype;
        return {[=, scales = std::move(scales.values)](int64_t first, int64_t count, float* to) {
                    const auto value = [&](int64_t c, int64_t o) {
                        const auto cell =
                            static_cast<size_t>(first_cell[static_cast<size_t>(c)] + o);
                        return (awq_number(data, c * rows + o) - zeros[cell]) * scales[cell];
                    };
                    read_turned(columns, first, count, value, to);
                },
                dtype};
    }

  private:
    int64_t group_size_;
};

}  // namespace

std::unique_ptr<PackedFormat> make_awq_format(int64_t group_size) {
    return std::make_unique<AwqFormat>(group_size);
}

}  // namespace hark
