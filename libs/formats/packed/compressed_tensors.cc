#include "formats/packed/compressed_tensors.h"

#include "formats/packed/fp8.h"

namespace hark {
namespace {

constexpr const char* kScale = "weight_scale";
constexpr const char* kZeros = "weight_zero_point";
constexpr const char* kPacked = "weight_packed";

class CompressedFormat : public PackedFormat {
  public:
    explicit CompressedFormat(std::vector<CompressedGroup> groups) : groups_(std::move(groups)) {}

    bool packs(const ModuleParts& parts) const override {
        return parts.has(kPacked) || parts.has("weight", "I8") || parts.has("weight", "F8_E4M3");
    }
    PackedMatrix open(const ModuleParts& parts, int64_t rows, int64_t columns) const override {
        const CompressedGroup& group = group_of(parts);
        parts.check(columns % std::max<int64_t>(group.cell.columns, 1) == 0 || group.cell.rows > 1,
                    kScale, "expected groups that divide ", columns, " columns, found groups of ",
                    group.cell.columns);
        ScaleGrid grid = read_scales(parts, kScale, rows, columns, group.cell);
        if (group.packed) return open_packed(parts, group, std::move(grid), rows, columns);
        if (!group.symmetric) read_byte_zeros(parts, grid);
        return open_scaled_bytes(parts, "weight", std::move(grid), rows, columns);
    }

  private:
    const CompressedGroup& group_of(const ModuleParts& parts) const {
        const std::string name = parts.full_name(kScale);
        for (const CompressedGroup& group : groups_)
            if (group.covers(name)) return group;
        parts.refuse(kScale, "expected a group of config_groups that covers the module");
    }

    static void read_byte_zeros(const ModuleParts& parts, ScaleGrid& grid) {
        const RawTensor stored = parts.take(kZeros);
        parts.check(stored.entry->dtype == "I8" && stored.bytes() == grid.cells(), kZeros,
                    "expected I8 and as many as scales, ", grid.cells(), ", found ",
                    stored.entry->dtype, " and ", stored.bytes(), " bytes");
        for (int64_t i = 0; i < grid.cells(); ++i)
            grid.zeros.push_back(load_value<int8_t>(stored.data, i));
    }

    // Numbers and zero points are stored with the same offset, so that their difference has none.
    static void read_packed_zeros(const ModuleParts& parts, const CompressedGroup& group,
                                  ScaleGrid& grid) {
        grid.zeros.assign(grid.scales.size(), static_cast<float>(1 << (group.bits - 1)));
        if (group.symmetric) return;
        const int64_t width = grid.width;
        const std::byte* data =
            parts.take(kZeros, "I32", {packed_words(grid.height(), group.bits), width});
        for (int64_t i = 0; i < grid.cells(); ++i) {
            const auto word = [&](int64_t k) {
                return load_value<uint32_t>(data, k * width + i % width);
            };
            grid.zeros[static_cast<size_t>(i)] =
                static_cast<float>(packed_bits(word, i / width, group.bits));
        }
    }

    static PackedMatrix open_packed(const ModuleParts& parts, const CompressedGroup& group,
                                    ScaleGrid grid, int64_t rows, int64_t columns) {
        const int bits = group.bits;
        const std::byte* shape = parts.take("weight_shape", "I64", {2});
        const auto out = load_value<int64_t>(shape, 0), in = load_value<int64_t>(shape, 1);
        parts.check(out == rows && in == columns, "weight_shape", "expected ", rows, ", ", columns,
                    ", found ", out, ", ", in);
        parts.check(grid.height() == rows || group.symmetric, kZeros,
                    "expected zero points per row or group, found one for the matrix");
        read_packed_zeros(parts, group, grid);
        if (parts.has("weight_g_idx")) read_cell_of_column(parts, "weight_g_idx", columns, grid);
        const int64_t words = packed_words(columns, bits);
        const std::byte* data = parts.take(kPacked, "I32", {rows, words});
        const Dtype dtype = grid.dtype;
        const auto shared = std::make_shared<const ScaleGrid>(std::move(grid));
        PackedMatrix matrix{[=](int64_t first, int64_t count, float* to) {
                                const auto value = [&](int64_t r, int64_t c) {
                                    const auto word = [&](int64_t k) {
                                        return load_value<uint32_t>(data, r * words + k);
                                    };
                                    return static_cast<float>(packed_bits(word, c, bits));
                                };
                                shared->read(columns, first, count, value, to);
                            },
                            dtype};
        if (group.symmetric && shared->cell_of_column.empty() && (bits == 4 || bits == 8))
            set_numbers(matrix, bits, shared);
        return matrix;
    }

    std::vector<CompressedGroup> groups_;
};

}  // namespace

std::unique_ptr<PackedFormat> make_compressed_format(std::vector<CompressedGroup> groups) {
    return std::make_unique<CompressedFormat>(std::move(groups));
}

}  // namespace hark
