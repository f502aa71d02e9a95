#include "gpt/families/tensor_slices.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "core/error.h"
#include "kernels/runtime/parallel.h"

namespace hark::gpt {
namespace {

using Along = TensorSplit::Along;
using Section = TensorSplit::Section;

// The lengths along rows or columns that a rank has of each section.
std::vector<Range> ranges_of(const TensorSplit& split, const RankOf& rank) {
    std::vector<Range> ranges;
    for (const auto& [first, units, width] : split.sections) {
        const int64_t begin = first + rank.rank * units / rank.ranks * width;
        ranges.push_back({begin, begin + std::max<int64_t>(units / rank.ranks, 1) * width});
    }
    return ranges;
}

}  // namespace

TensorSplit split_of(const DecoderConfig& c, const TensorSpec& spec) {
    const auto rows = [](std::vector<Section> sections) {
        return TensorSplit{Along::rows, std::move(sections)};
    };
    const auto columns = [](const Section& section) {
        return TensorSplit{Along::columns, {section}};
    };
    const int64_t d = c.head_dim, of_key = c.latent.plain + c.latent.rotary;
    switch (spec.part) {
        case Part::q:
        case Part::q_bias:
        case Part::q_b:
            return rows({{0, c.n_head, c.is_latent() ? of_key : d}});
        case Part::k:
        case Part::k_bias:
        case Part::v:
        case Part::v_bias:
            return rows({{0, c.n_kv_head, d}});
        case Part::qkv:
        case Part::qkv_bias:
            return rows({{0, c.n_head, d},
                         {c.q_width(), c.n_kv_head, d},
                         {c.q_width() + c.kv_width(), c.n_kv_head, d}});
        case Part::kv_b:
            return rows({{0, c.n_head, c.latent.plain + c.latent.value}});
        case Part::sinks:
            return rows({{0, c.n_head, 1}});
        case Part::attn_out:
            return columns({0, c.n_head, c.is_latent() ? c.latent.value : d});
        case Part::gate_up:
            return rows({{0, c.n_inner, 1}, {c.n_inner, c.n_inner, 1}});
        case Part::gate:
        case Part::up:
        case Part::up_bias:
            return rows({{0, c.n_inner, 1}});
        case Part::down:
            return columns({0, c.n_inner, 1});
        case Part::shared_gate:
        case Part::shared_up:
            return rows({{0, c.experts.n_shared_inner, 1}});
        case Part::shared_down:
            return columns({0, c.experts.n_shared_inner, 1});
        case Part::expert_gate:
        case Part::expert_gate_bias:
        case Part::expert_up:
        case Part::expert_up_bias:
            return rows({{0, c.experts.n_inner, 1}});
        case Part::expert_down:
            return columns({0, c.experts.n_inner, 1});
        case Part::attn_out_bias:
        case Part::down_bias:
        case Part::expert_down_bias:
            return {.along = Along::nothing, .sections = {}, .is_of_sum = true};
        default:
            return {};
    }
}

DecoderConfig sliced_config(const DecoderConfig& config, int64_t ranks) {
    const auto divide = [&](int64_t& n, const char* what) {
        require(n % ranks == 0, ranks, " processes cannot share the model: expected a divisor of ",
                what, " ", n, ", got ", ranks);
        n /= ranks;
    };
    DecoderConfig own = config;
    require(ranks == 1 || config.qk_norm != QkNorm::row, ranks,
            " processes cannot share the model: family '", config.family,
            "' has norms over the queries of all heads, which one process computes");
    require(tokens_of(config.n_vocab, {ranks - 1, ranks}).size() > 0, ranks,
            " processes cannot share the model: its ", config.n_vocab, " tokens are too few");
    divide(own.n_head, "its attention heads,");
    if (!config.is_latent()) {
        if (ranks % own.n_kv_head == 0)
            own.n_kv_head = 1;
        else
            divide(own.n_kv_head, "its heads of keys and values,");
    }
    const bool is_dense = std::any_of(config.layers.begin(), config.layers.end(),
                                      [](const LayerConfig& layer) { return !layer.has_experts; });
    if (is_dense) divide(own.n_inner, "its MLPs' channels,");
    if (config.experts.count > 0) {
        divide(own.experts.n_inner, "its experts' channels,");
        divide(own.experts.n_shared_inner, "its shared experts' channels,");
    }
    return own;
}

Range tokens_of(int64_t vocabulary, const RankOf& rank) {
    constexpr int64_t kAligned = 16;  // rows, as vector loads want them
    const int64_t pieces = kAligned * rank.ranks;
    const int64_t each = (vocabulary + pieces - 1) / pieces * kAligned;
    return Range{rank.rank * each, (rank.rank + 1) * each}.within({0, vocabulary});
}

SlicedTensors::SlicedTensors(TensorSource& whole, const DecoderConfig& config, const RankOf& rank)
    : whole_(whole),
      whole_config_(config),
      config_(sliced_config(config, rank.ranks)),
      rank_(rank) {
    for (const TensorSpec& spec : tensor_specs(config)) {
        specs_[spec.name] = spec;
        names_[{spec.layer, spec.part, spec.expert}] = spec.name;
    }
}

// Heads that are tensors of their own have the number in the slice.
const TensorSpec& SlicedTensors::whole_spec(const std::string& name) const {
    const auto found = specs_.find(name);
    require(found != specs_.end(), "internal error: no tensor ", name, " to take a slice of");
    const TensorSpec& spec = found->second;
    if (spec.part != Part::k_b && spec.part != Part::v_b) return spec;
    const int64_t head = spec.expert + rank_.rank * config_.n_head;
    return specs_.at(names_.at({spec.layer, spec.part, head}));
}

Tensor SlicedTensors::take(const std::string& name, std::initializer_list<int64_t>) {
    const TensorSpec& spec = whole_spec(name);
    const Tensor whole = gpt::take(whole_, spec);
    const TensorSplit split = split_of(whole_config_, spec);
    std::vector<Range> ranges = ranges_of(split, rank_);
    Along along = split.along;
    if (spec.part == Part::lm_head) {
        along = Along::rows;
        ranges = {tokens_of(spec.rows, rank_)};
    }
    if (split.is_of_sum && rank_.rank > 0) return zeros(whole);
    if (along == Along::nothing) return whole;
    const bool columns = (along == Along::columns) != is_turned(whole_, spec);
    if (!columns && ranges.size() == 1) return whole.slice(ranges[0].begin, ranges[0].end);
    return copy(spec, whole, ranges, columns);
}

Tensor SlicedTensors::copy(const TensorSpec& spec, const Tensor& whole,
                           const std::vector<Range>& ranges, bool columns) {
    const int64_t length =
        std::accumulate(ranges.begin(), ranges.end(), int64_t{0},
                        [](int64_t sum, const Range& range) { return sum + range.size(); });
    const int64_t block = block_size(whole.dtype).values;
    for (const Range& range : ranges)
        require(!columns || (range.begin % block == 0 && range.end % block == 0), "tensor '",
                spec.name, "': expected slices of whole blocks of ", block, " values of ",
                name_of(whole.dtype), ", found ", range.size(), " columns for each of ",
                rank_.ranks, " processes; take fewer, or another type");
    Tensor slice = whole;
    slice.shape[columns ? 1 : 0] = length;
    slice.data = copies_.emplace_back(new std::byte[slice.bytes()]).get();
    auto* to = static_cast<std::byte*>(slice.data);
    const auto* from = static_cast<const std::byte*>(whole.data);
    // A row; of a tensor that is cut by rows all of it is one.
    const int64_t width = columns ? whole.dim(1) : whole.size();
    const int64_t unit = columns || whole.rank == 1 ? 1 : whole.dim(1);
    const int64_t rows = columns ? whole.dim(0) : 1;
    const auto bytes = [&](int64_t n) {
        return static_cast<int64_t>(row_bytes(whole.dtype, n * unit));
    };
    const int64_t whole_row = static_cast<int64_t>(row_bytes(whole.dtype, width));
    parallel_for(threads_, rows, [&](int64_t row) {
        std::byte* next = to + row * bytes(length);
        for (const auto& [begin, end] : ranges) {
            std::memcpy(next, from + row * whole_row + bytes(begin),
                        static_cast<size_t>(bytes(end - begin)));
            next += bytes(end - begin);
        }
    });
    return slice;
}

Tensor SlicedTensors::zeros(const Tensor& like) {
    Tensor zeros = like;
    zeros.data = copies_.emplace_back(new std::byte[like.bytes()]()).get();
    return zeros;
}

}  // namespace hark::gpt
