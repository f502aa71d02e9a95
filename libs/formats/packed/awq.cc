#include "formats/packed/awq.h"

namespace hark {
namespace {

constexpr int64_t kColumns = 8;  // of a word

// Column o of a row of words.
float awq_number(const std::byte* words, int64_t o) {
    const int64_t column = o % kColumns, shift = 4 * (column / 2 + column % 2 * 4);
    return static_cast<float>(load_value<uint32_t>(words, o / kColumns) >> shift & 15);
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
        const std::byte* zeros = parts.take("qzeros", "I32", {groups, words});
        FloatPart scales = parts.floats("scales", {groups, rows});
        const Dtype dtype = scales.dtype;
        return {[=, scales = std::move(scales.values)](int64_t first, int64_t count, float* to) {
                    for (int64_t c = 0; c < columns; ++c) {
                        const int64_t group = c / size;
                        const std::byte* numbers = data + c * words * 4;
                        const std::byte* zero = zeros + group * words * 4;
                        const float* scale = scales.data() + group * rows;
                        for (int64_t o = first; o < first + count; ++o)
                            to[(o - first) * columns + c] =
                                (awq_number(numbers, o) - awq_number(zero, o)) * scale[o];
                    }
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
