#include "formats/packed/gptq.h"

#include <algorithm>

namespace hark {
namespace {

class GptqFormat : public PackedFormat {
  public:
    explicit GptqFormat(const GptqSettings& settings) : settings_(settings) {}

    bool packs(const ModuleParts& parts) const override { return parts.has("qweight"); }
    PackedMatrix open(const ModuleParts& parts, int64_t rows, int64_t columns) const override {
        const int bits = bits_of(parts, columns);
        parts.check(rows * bits % 32 == 0 && columns * bits % 32 == 0, "qweight",
                    "expected a matrix (in, out) of whole words of ", bits, " bits, found (",
                    columns, ", ", rows, ")");
        const std::byte* data = parts.take("qweight", "I32", {columns * bits / 32, rows});
        FloatPart scales = parts.floats("scales");
        parts.check(scales.shape.size() == 2 && scales.shape[0] > 0 && scales.shape[1] == rows,
                    "scales", "expected (groups, ", rows, "), found another shape");
        const int64_t groups = scales.shape[0];
        const std::vector<int32_t> group_of = groups_of(parts, columns, groups);
        const std::vector<int32_t> zeros = read_zeros(parts, rows, groups, bits);
        PackedMatrix matrix{.dtype = scales.dtype};
        const auto shared = std::make_shared<const std::vector<float>>(std::move(scales.values));
        if (is_plain(group_of, zeros, groups, bits)) {
            matrix.bits = bits;
            matrix.neighbours = columns / groups;
            matrix.scale = [=, size = columns / groups](int64_t row, int64_t column) {
                return (*shared)[static_cast<size_t>(column / size * rows + row)];
            };
        }
        matrix.read = [=](int64_t first, int64_t count, float* to) {
            const std::vector<float>& scale = *shared;
            const auto value = [&](int64_t c, int64_t o) {
                const auto word = [&](int64_t k) {
                    return load_value<uint32_t>(data, k * rows + o);
                };
                const auto q = static_cast<int32_t>(packed_bits(word, c, bits));
                const auto cell = static_cast<size_t>(group_of[static_cast<size_t>(c)] * rows + o);
                return static_cast<float>(q - zeros[cell]) * scale[cell];
            };
            read_turned(columns, first, count, value, to);
        };
        return matrix;
    }

  private:
    int bits_of(const ModuleParts& parts, int64_t columns) const {
        if (settings_.bits > 0) return settings_.bits;
        const RawTensor stored = parts.take("qweight");
        const int64_t words = stored.entry->shape.empty() ? 0 : stored.entry->shape.front();
        for (const int bits : {2, 3, 4, 8})
            if (words == packed_words(columns, bits)) return bits;
        parts.refuse("qweight", "expected ", columns, " rows of 2, 3, 4 or 8 bits, found ", words,
                     " words");
    }

    std::vector<int32_t> groups_of(const ModuleParts& parts, int64_t columns,
                                   int64_t groups) const {
        std::vector<int32_t> group_of(static_cast<size_t>(columns));
        const bool is_stored = parts.has("g_idx");
        const int64_t size = settings_.group_size > 0 ? settings_.group_size : columns;
        parts.check(is_stored || (columns - 1) / size + 1 == groups, "scales", "expected ",
                    (columns - 1) / size + 1, " groups of ", size, " rows, found ", groups);
        const std::byte* stored = is_stored ? parts.take("g_idx", "I32", {columns}) : nullptr;
        for (int64_t c = 0; c < columns; ++c) {
            const int64_t group = stored ? load_value<int32_t>(stored, c) : c / size;
            parts.check(group >= 0 && group < groups, "g_idx", "expected groups below ", groups,
                        ", found ", group);
            group_of[static_cast<size_t>(c)] = static_cast<int32_t>(group);
        }
        return group_of;
    }

    // Whether the numbers have a sign and no other offset, and groups are neighbouring rows.
    static bool is_plain(const std::vector<int32_t>& group_of, const std::vector<int32_t>& zeros,
                         int64_t groups, int bits) {
        const auto columns = static_cast<int64_t>(group_of.size());
        if ((bits != 4 && bits != 8) || columns % groups != 0) return false;
        for (int64_t c = 0; c < columns; ++c)
            if (group_of[static_cast<size_t>(c)] != c / (columns / groups)) return false;
        return std::all_of(zeros.begin(), zeros.end(),
                           [&](int32_t zero) { return zero == 1 << (bits - 1); });
    }

    std::vector<int32_t> read_zeros(const ModuleParts& parts, int64_t rows, int64_t groups,
                                    int bits) const {
        const int64_t words = rows * bits / 32;
        const std::byte* data = parts.take("qzeros", "I32", {groups, words});
        std::vector<int32_t> zeros(static_cast<size_t>(groups * rows));
        for (int64_t group = 0; group < groups; ++group) {
            const auto word = [&](int64_t k) {
                return load_value<uint32_t>(data, group * words + k);
            };
            for (int64_t o = 0; o < rows; ++o)
                zeros[static_cast<size_t>(group * rows + o)] =
                    static_cast<int32_t>(packed_bits(word, o, bits)) + settings_.has_offset;
        }
        return zeros;
    }

    GptqSettings settings_;
};

}  // namespace

std::unique_ptr<PackedFormat> make_gptq_format(const GptqSettings& settings) {
    return std::make_unique<GptqFormat>(settings);
}

}  // namespace hark
