#include "formats/packed/bitsandbytes.h"

#include <cmath>

#include "core/json/json.h"

namespace hark {
namespace {

using nlohmann::json;

constexpr const char* kAbsmax = "weight.absmax";
constexpr const char* kStates[] = {"weight.quant_state.bitsandbytes__nf4",
                                   "weight.quant_state.bitsandbytes__fp4"};
constexpr int64_t kLargestBlock = 1 << 16;

// What quant_state says.
struct QuantState {
    Dtype dtype = Dtype::f32;
    int64_t block = 64, nested_block = 256;
    float offset = 0;
    bool is_nested = false;
};

// Reads the JSON in a module's part.
class QuantStateReader {
  public:
    QuantStateReader(const ModuleParts& parts, const char* part)
        : parts_(parts), part_(part), root_(parse(parts, part)) {}

    QuantState read(int64_t rows, int64_t columns) const {
        const json shape = root_.value("shape", json());
        parts_.check(shape == json::array({rows, columns}), part_, "'shape': expected [", rows,
                     ", ", columns, "], found ", shape.dump());
        QuantState state;
        state.dtype = dtype();
        state.block = size("blocksize");
        state.is_nested = root_.contains("nested_blocksize");
        if (!state.is_nested) return state;
        state.nested_block = size("nested_blocksize");
        const json offset = root_.value("nested_offset", json());
        parts_.check(offset.is_number() && std::isfinite(offset.get<double>()), part_,
                     "'nested_offset': expected a number, found ", offset.dump());
        state.offset = static_cast<float>(offset.get<double>());
        return state;
    }

  private:
    static json parse(const ModuleParts& parts, const char* part) {
        const RawTensor raw = parts.take(part);
        const std::string_view text(reinterpret_cast<const char*>(raw.data),
                                    static_cast<size_t>(raw.bytes()));
        json root = parse_json(text, raw.file->name());
        parts.check(root.is_object(), part, "expected a JSON object");
        return root;
    }
    int64_t size(const char* key) const {
        const json value = root_.value(key, json());
        parts_.check(value.is_number_integer() && value >= 1 && value <= kLargestBlock, part_, "'",
                     key, "': expected a whole number from 1 to ", kLargestBlock, ", found ",
                     value.dump());
        return value.get<int64_t>();
    }
    Dtype dtype() const {
        const json name = root_.value("dtype", json());
        if (name == "float32") return Dtype::f32;
        if (name == "bfloat16") return Dtype::bf16;
        parts_.check(name == "float16", part_,
                     "'dtype': expected float32, float16 or bfloat16, found ", name.dump());
        return Dtype::f16;
    }

    const ModuleParts& parts_;
    const char* part_;
    json root_;
};

int64_t blocks_of(int64_t values, int64_t block) { return (values - 1) / block + 1; }

std::vector<float> read_absmax(const ModuleParts& parts, const QuantState& state, int64_t blocks) {
    if (!state.is_nested) return parts.floats(kAbsmax, {blocks}).values;
    const std::byte* codes = parts.take(kAbsmax, "U8", {blocks});
    const auto levels = parts.floats("weight.nested_quant_map", {256}).values;
    const auto scales =
        parts.floats("weight.nested_absmax", {blocks_of(blocks, state.nested_block)}).values;
    std::vector<float> absmax(static_cast<size_t>(blocks));
    for (int64_t i = 0; i < blocks; ++i) {
        const float level = levels[std::to_integer<size_t>(codes[i])];
        const float scaled = level * scales[static_cast<size_t>(i / state.nested_block)];
        absmax[static_cast<size_t>(i)] = scaled + state.offset;
    }
    return absmax;
}

PackedMatrix open_four_bits(const ModuleParts& parts, const char* state_part, int64_t rows,
                            int64_t columns) {
    const QuantState state = QuantStateReader(parts, state_part).read(rows, columns);
    const int64_t values = rows * columns;
    const RawTensor stored = parts.take("weight");
    parts.check(stored.bytes() == (values + 1) / 2, "weight", "expected ", (values + 1) / 2,
                " bytes for (", rows, ", ", columns, "), found ", stored.bytes());
    std::vector<float> levels = parts.floats("weight.quant_map", {16}).values;
    // fp4's -0, for which quant_map has 0: bitsandbytes' kernels read the sign from the number.
    if (state_part == kStates[1]) levels[8] = -std::abs(levels[8]);
    const std::vector<float> absmax = read_absmax(parts, state, blocks_of(values, state.block));
    return {[=, data = stored.data](int64_t first, int64_t count, float* to) {
                for (int64_t i = first * columns; i < (first + count) * columns; ++i) {
                    const auto byte = std::to_integer<size_t>(data[i / 2]);
                    const size_t number = i % 2 == 0 ? byte >> 4 : byte & 15;
                    *to++ = levels[number] * absmax[static_cast<size_t>(i / state.block)];
                }
            },
            state.dtype};
}

PackedMatrix open_eight_bits(const ModuleParts& parts, int64_t rows, int64_t columns) {
    constexpr float kPerUnit = 7.874015718698502e-3f;  // 1 / 127, as bitsandbytes has it
    const std::byte* data = parts.take("weight", "I8", {rows, columns});
    const std::vector<float> largest = parts.floats("SCB", {rows}).values;
    // Matrices that a GPU's kernels have reordered; none is published.
    if (parts.has("weight_format")) {
        const RawTensor format = parts.take("weight_format");
        parts.check(format.bytes() > 0 && format.data[0] == std::byte{0}, "weight_format",
                    "expected 0, rows in their order, found another order");
    }
    return {[=](int64_t first, int64_t count, float* to) {
                for (int64_t r = first; r < first + count; ++r)
                    for (int64_t c = 0; c < columns; ++c)
                        *to++ = static_cast<float>(load_value<int8_t>(data, r * columns + c)) *
                                largest[static_cast<size_t>(r)] * kPerUnit;
            },
            Dtype::f32};
}

class BitsAndBytesFormat : public PackedFormat {
  public:
    bool packs(const ModuleParts& parts) const override {
        return parts.has(kAbsmax) || parts.has("SCB");
    }
    PackedMatrix open(const ModuleParts& parts, int64_t rows, int64_t columns) const override {
        if (parts.has("SCB")) return open_eight_bits(parts, rows, columns);
        return open_four_bits(parts, parts.has(kStates[0]) ? kStates[0] : kStates[1], rows,
                              columns);
    }
};

}  // namespace

std::unique_ptr<PackedFormat> make_bitsandbytes_format() {
    return std::make_unique<BitsAndBytesFormat>();
}

}  // namespace hark
