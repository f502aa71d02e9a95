#include "gpt/families/gpt_oss_tensors.h"

#include <charconv>
#include <cstring>
#include <optional>

#include "core/error.h"

namespace hark::gpt {
namespace {

constexpr int64_t kValues = 32, kBytes = 17;  // of a block, in memory
constexpr int64_t kHalf = kValues / 2;

// An expert's tensor in the file: rows first, first + step, ... of the stacked tensor's expert.
struct Place {
    std::string stacked;  // "layers.3.mlp.experts.gate_up_proj"
    int64_t expert = 0;
    int64_t first = 0, step = 1;
    bool bias = false;
};

// The file's 16 bytes of a block have neighbours 2 j and 2 j + 1 in byte j; in memory byte j has
// values j and j + 16, the lower one in the lower bits.
void pack_block(std::byte* to, const std::byte* from, std::byte scale) {
    const auto value = [&](int64_t i) { return (from[i / 2] >> (i % 2 * 4)) & std::byte{15}; };
    to[0] = scale;
    for (int64_t j = 0; j < kHalf; ++j) to[1 + j] = value(j) | value(j + kHalf) << 4;
}

class GptOssTensors : public TensorSource {
  public:
    GptOssTensors(TensorSource& stored, const ExpertConfig& experts)
        : stored_(stored), experts_(experts) {}

    Tensor take(const std::string& name, std::initializer_list<int64_t> shape) override {
        const std::optional<Place> place = place_of(name);
        if (!place) return stored_.take(name, shape);
        const std::vector<int64_t> wanted(shape);
        if (place->bias) return bias(*place, wanted[0]);
        return has_blocks(*place) ? blocks(*place, wanted[0], wanted[1])
                                  : numbers(*place, wanted[0], wanted[1]);
    }
    bool has(const std::string& name) const override {
        const std::optional<Place> place = place_of(name);
        if (!place) return stored_.has(name);
        return place->bias ? stored_.has(place->stacked + "_bias")
                           : has_blocks(*place) || stored_.has(place->stacked);
    }
    std::string where() const override { return stored_.where(); }
    void release_tensors() override {
        copies_.clear();
        stored_.release_tensors();
    }
    bool is_mapped(const Tensor& tensor) const override { return stored_.is_mapped(tensor); }

  private:
    // "layers.3.mlp.experts.5.gate_proj.weight"; nothing for a tensor that is not of an expert.
    static std::optional<Place> place_of(const std::string& name) {
        constexpr std::string_view kExperts = ".mlp.experts.";
        const size_t at = name.find(kExperts);
        if (at == name.npos) return std::nullopt;
        const char *number = name.data() + at + kExperts.size(), *end = name.data() + name.size();
        Place place;
        const auto read = std::from_chars(number, end, place.expert);
        const std::string part(read.ptr, end);
        place.bias = part.ends_with(".bias");
        const bool down = part.starts_with(".down_proj");
        place.stacked =
            name.substr(0, at) + std::string(kExperts) + (down ? "down_proj" : "gate_up_proj");
        if (!down) place.first = part.starts_with(".up_proj"), place.step = 2;
        return place;
    }
    bool has_blocks(const Place& place) const { return stored_.has(place.stacked + "_blocks"); }

    std::byte* copy_of(size_t bytes) {
        copies_.push_back(std::make_unique<std::byte[]>(bytes));
        return copies_.back().get();
    }

    // An expert's rows of numbers, from columns of its (columns, step * rows).
    Tensor gathered(const Place& place, const Tensor& stacked, Tensor result) {
        const int64_t rows = result.dim(0), columns = result.rank == 2 ? result.dim(1) : 1;
        const Tensor from = stacked.slice(place.expert, place.expert + 1);
        const size_t size = size_of(stacked.dtype);
        std::byte* to = copy_of(result.bytes());
        result.data = to;
        const auto* values = static_cast<const std::byte*>(from.data);
        const int64_t width = place.step * rows;
        for (int64_t r = 0; r < rows; ++r)
            for (int64_t c = 0; c < columns; ++c) {
                const int64_t at = c * width + r * place.step + place.first;
                std::memcpy(to, values + static_cast<size_t>(at) * size, size);
                to += size;
            }
        return result;
    }
    Tensor bias(const Place& place, int64_t rows) {
        const Tensor stacked =
            stored_.take(place.stacked + "_bias", {experts_.count, place.step * rows});
        return gathered(place, stacked, Tensor(nullptr, stacked.dtype, {rows}));
    }
    Tensor numbers(const Place& place, int64_t rows, int64_t columns) {
        const Tensor stacked =
            stored_.take(place.stacked, {experts_.count, columns, place.step * rows});
        return gathered(place, stacked, Tensor(nullptr, stacked.dtype, {rows, columns}));
    }
    Tensor blocks(const Place& place, int64_t rows, int64_t columns) {
        require(columns % kValues == 0, where(), ": ", place.stacked, ": expected whole blocks of ",
                kValues, " values, found rows of ", columns);
        const int64_t per_row = columns / kValues, all = place.step * rows;
        const Tensor blocks =
            stored_.take(place.stacked + "_blocks", {experts_.count, all, per_row, kHalf});
        const Tensor scales =
            stored_.take(place.stacked + "_scales", {experts_.count, all, per_row});
        for (const Tensor& part : {blocks, scales})
            require(part.dtype == Dtype::u8, where(), ": ", place.stacked,
                    ": expected blocks and scales of mxfp4 in u8, found ", part);
        Tensor result(nullptr, Dtype::mxfp4, {rows, columns});
        std::byte* to = copy_of(result.bytes());
        result.data = to;
        const auto* bytes = static_cast<const std::byte*>(blocks.data);
        const auto* exponents = static_cast<const std::byte*>(scales.data);
        for (int64_t r = 0; r < rows; ++r)
            for (int64_t b = 0; b < per_row; ++b, to += kBytes) {
                const int64_t row = place.expert * all + r * place.step + place.first;
                const int64_t at = row * per_row + b;
                pack_block(to, bytes + at * kHalf, exponents[at]);
            }
        return result;
    }

    TensorSource& stored_;
    ExpertConfig experts_;
    std::vector<std::unique_ptr<std::byte[]>> copies_;  // until release_tensors()
};

}  // namespace

std::unique_ptr<TensorSource> unpack_gpt_oss(TensorSource& stored, const DecoderConfig& config) {
    return std::make_unique<GptOssTensors>(stored, config.experts);
}

}  // namespace hark::gpt
