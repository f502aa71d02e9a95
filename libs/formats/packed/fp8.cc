#include "formats/packed/fp8.h"

#include <array>

#include "core/fp8.h"

namespace hark {
namespace {

class Fp8Format : public PackedFormat {
  public:
    explicit Fp8Format(const Cell& block)
        : block_(block), scale_(block.rows > 0 ? "weight_scale_inv" : "weight_scale") {}

    bool packs(const ModuleParts& parts) const override { return parts.has("weight", "F8_E4M3"); }
    PackedMatrix open(const ModuleParts& parts, int64_t rows, int64_t columns) const override {
        return open_scaled_bytes(parts, "weight", scales(parts, rows, columns), rows, columns);
    }

  private:
    ScaleGrid scales(const ModuleParts& parts, int64_t rows, int64_t columns) const {
        if (block_.rows > 0) return read_scales(parts, scale_, rows, columns, block_);
        const RawTensor stored = parts.take(scale_);
        const bool one = stored.entry->shape.empty() || stored.entry->shape.front() == 1;
        return read_scales(parts, scale_, rows, columns, {one ? 0 : 1, 0});
    }

    Cell block_;
    std::string scale_;
};

const std::array<float, 256>& fp8_values() {
    static const std::array<float, 256> all = [] {
        std::array<float, 256> values;
        for (size_t i = 0; i < values.size(); ++i)
            values[i] = to_float(fp8_t{static_cast<uint8_t>(i)});
        return values;
    }();
    return all;
}

}  // namespace

PackedMatrix open_scaled_bytes(const ModuleParts& parts, const std::string& part, ScaleGrid grid,
                               int64_t rows, int64_t columns) {
    const Dtype dtype = grid.dtype;
    if (parts.has(part, "I8")) {
        const std::byte* data = parts.take(part, "I8", {rows, columns});
        const auto shared = std::make_shared<const ScaleGrid>(std::move(grid));
        PackedMatrix matrix{
            [=](int64_t first, int64_t count, float* to) {
                const auto value = [&](int64_t r, int64_t c) {
                    return static_cast<float>(load_value<int8_t>(data, r * columns + c));
                };
                shared->read(columns, first, count, value, to);
            },
            dtype};
        if (shared->zeros.empty()) set_numbers(matrix, 8, shared);
        return matrix;
    }
    const std::byte* data = parts.take(part, "F8_E4M3", {rows, columns});
    return {[=, grid = std::move(grid)](int64_t first, int64_t count, float* to) {
                const std::array<float, 256>& values = fp8_values();
                const auto value = [&](int64_t r, int64_t c) {
                    return values[std::to_integer<uint8_t>(data[r * columns + c])];
                };
                grid.read(columns, first, count, value, to);
            },
            dtype};
}

std::unique_ptr<PackedFormat> make_fp8_format(const Cell& block) {
    return std::make_unique<Fp8Format>(block);
}

}  // namespace hark
