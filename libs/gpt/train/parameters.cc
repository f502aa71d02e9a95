#include "gpt/train/parameters.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>

#include "core/error.h"
#include "core/files/files.h"
#include "core/files/io.h"
#include "core/finite.h"
#include "core/random.h"
#include "core/tensor_value.h"
#include "formats/safetensors.h"
#include "gpt/families/family.h"

namespace hark::gpt {
namespace {

// Rows of logits are then whole lines of memory, which a GPU multiplies faster.
constexpr int64_t kVocabMultiple = 64;

// Box & Muller 1958.
class GaussianSource {
  public:
    explicit GaussianSource(uint64_t seed) : random_(seed) {}
    double operator()() {
        if (has_second_) {
            has_second_ = false;
            return second_;
        }
        const double radius = std::sqrt(-2 * std::log(1 - random_.uniform()));
        const double angle = 2 * M_PI * random_.uniform();
        second_ = radius * std::sin(angle);
        has_second_ = true;
        return radius * std::cos(angle);
    }

  private:
    Random random_;
    double second_ = 0;
    bool has_second_ = false;
};

// The view of a block that a part is, or a part of.
Tensor BlockTensors::*view_of(Part part) {
    switch (part) {
        case Part::attn_norm:
            return &BlockTensors::attn_norm_weight;
        case Part::attn_norm_bias:
            return &BlockTensors::attn_norm_bias;
        case Part::qkv:
        case Part::q:
        case Part::k:
        case Part::v:
            return &BlockTensors::qkv_weight;
        case Part::qkv_bias:
        case Part::q_bias:
        case Part::k_bias:
        case Part::v_bias:
            return &BlockTensors::qkv_bias;
        case Part::q_norm:
            return &BlockTensors::q_norm_weight;
        case Part::k_norm:
            return &BlockTensors::k_norm_weight;
        case Part::attn_out:
            return &BlockTensors::attn_out_weight;
        case Part::attn_out_bias:
            return &BlockTensors::attn_out_bias;
        case Part::mlp_norm:
            return &BlockTensors::mlp_norm_weight;
        case Part::mlp_norm_bias:
            return &BlockTensors::mlp_norm_bias;
        case Part::gate_up:
        case Part::gate:
        case Part::up:
            return &BlockTensors::mlp_in_weight;
        case Part::up_bias:
            return &BlockTensors::mlp_in_bias;
        case Part::down:
            return &BlockTensors::down_weight;
        case Part::down_bias:
            return &BlockTensors::down_bias;
        default:
            fail("internal error: a tensor that training has no place for");
    }
}

// Appends the rows of the next tensor in memory.
void append(Tensor& view, const Tensor& next) {
    if (!view) {
        view = next;
        return;
    }
    require(static_cast<std::byte*>(view.data) + view.bytes() == next.data,
            "internal error: tensors of one product are not next to each other");
    view.shape[0] += next.shape[0];
}

void check_is_trained(const DecoderConfig& c) {
    const auto refuse = [&](bool has, const char* what) {
        require(!has, "training: ", what, " of family '", c.family, "' cannot be trained yet");
    };
    const bool has_window = std::any_of(
        c.layers.begin(), c.layers.end(),
        [&](const LayerConfig& layer) { return layer.window > 0 && layer.window < c.n_positions; });
    refuse(c.is_latent(), "latent attention");
    refuse(c.norm_place != NormPlace::before, "norms after attention or MLP");
    refuse(c.norm_offset != 0, "norms with an offset");
    refuse(has_window, "attention over a window");
    refuse(c.has_longrope(), "rotary positions that depend on the length (longrope)");
    refuse(c.attention_soft_cap != 0 || c.logit_soft_cap != 0, "soft caps");
    refuse(c.attention_scale != 1 / std::sqrt(static_cast<float>(c.head_dim)),
           "scores with a scale of their own");
    refuse(c.embedding_scale != 1 || c.residual_scale != 1 || c.logit_scale != 1,
           "scaled embeddings, residuals or logits");
    refuse(c.attention_sinks, "attention sinks");
    refuse(c.experts.count > 0, "mixtures of experts");
    refuse(c.gated_mlp && c.mlp_bias, "gated MLPs with biases");
}

void check_ranks(const DecoderConfig& c, int64_t ranks) {
    require(
        ranks > 0 && c.n_head % ranks == 0 && c.n_kv_head % ranks == 0 && c.n_inner % ranks == 0,
        "parameters: expected ranks that divide ", c.n_head, " heads, ", c.n_kv_head,
        " of keys and values, and ", c.n_inner, " channels, found ", ranks);
    require(ranks == 1 || c.qk_norm == QkNorm::none,
            "parameters: expected one rank for norms of queries and keys, found ", ranks);
    require(ranks == 1 || !c.fused_qkv || c.n_kv_head == c.n_head,
            "parameters: expected one rank for a fused tensor of grouped heads, found ", ranks);
}

// How one of `ranks` has a tensor of a block. In a matrix sliced by columns each row is a chunk;
// queries, keys and values of one tensor are a chunk each, as are its gate and up.
ParameterLayout::Entry slice_of(const DecoderConfig& config, const TensorSpec& spec,
                                int64_t ranks) {
    ParameterLayout::Entry entry{.name = spec.name,
                                 .rows = spec.rows,
                                 .columns = spec.columns,
                                 .transposed = spec.in_out,
                                 .part = spec.part,
                                 .layer = spec.layer};
    const TensorSplit split = split_of(config, spec);
    if (split.along == TensorSplit::Along::rows) {
        entry.tp_chunks = std::ssize(split.sections);
        entry.rows /= ranks;
    } else if (split.along == TensorSplit::Along::columns) {
        entry.tp_chunks = spec.rows;
        entry.columns /= ranks;
    }
    return entry;
}

bool is_norm_weight(Part part) {
    return part == Part::attn_norm || part == Part::mlp_norm || part == Part::final_norm ||
           part == Part::q_norm || part == Part::k_norm;
}

}  // namespace

void ParameterLayout::add(Entry entry) {
    entry.offset = size_;
    if (entry.stored_rows == 0) entry.stored_rows = entry.rows;
    size_ += entry.size();
    places_[entry.name] = entries_.size();
    entries_.push_back(std::move(entry));
}

void ParameterLayout::add_table(const TensorSpec& spec) {
    const bool is_padded = spec.part != Part::position_table;
    add({.name = spec.name,
         .rows = is_padded ? padded_vocab_ : spec.rows,
         .columns = spec.columns,
         .stored_rows = spec.rows,
         .part = spec.part});
}

ParameterLayout::ParameterLayout(const DecoderConfig& config, int64_t ranks)
    : config_(config), prefix_(family_of(config.family, "training").prefix) {
    check_is_trained(config);
    check_ranks(config, ranks);
    padded_vocab_ = (config.n_vocab + kVocabMultiple - 1) / kVocabMultiple * kVocabMultiple;
    std::vector<Entry> others;
    for (const TensorSpec& spec : tensor_specs(config))
        if (spec.layer < 0 && spec.columns > 0)
            add_table(spec);
        else
            others.push_back(slice_of(config, spec, ranks));
    tables_ = size_;
    const auto add_those = [&](const auto& takes) {
        for (const Entry& entry : others)
            if (takes(entry)) add(entry);
    };
    const auto is_matrix = [](const Entry& entry) { return entry.columns > 0; };
    const auto is_sliced = [&](const Entry& entry) { return ranks > 1 && entry.tp_chunks > 0; };
    add_those(is_matrix);
    decayed_ = size_;
    add_those([&](const Entry& entry) { return !is_matrix(entry) && is_sliced(entry); });
    sliced_ = size_;
    add_those([&](const Entry& entry) { return !is_matrix(entry) && !is_sliced(entry); });
}

std::vector<int64_t> ParameterLayout::matrices_of(const Entry& entry) const {
    if (entry.part == Part::qkv) return {config_.q_width(), config_.kv_width(), config_.kv_width()};
    if (entry.part == Part::gate_up) return {config_.n_inner, config_.n_inner};
    return {entry.rows};
}

Tensor ParameterLayout::view(const Entry& entry, const Tensor& all, const Tensor& matrices) const {
    const bool multiplied = matrices && entry.columns > 0 && entry.part != Part::position_table;
    const Tensor part =
        (multiplied ? matrices : all).slice(entry.offset, entry.offset + entry.size());
    return entry.columns > 0 ? part.reshaped({entry.rows, entry.columns}) : part;
}

ModelTensors ParameterLayout::views(Tensor all, Tensor matrices) const {
    require(all.dtype == Dtype::f32 && all.size() == size_, "parameters: expected f32 (", size_,
            "), found ", all);
    require(!matrices || matrices.size() == decayed_, "parameters: expected matrices (", decayed_,
            "), found ", matrices);
    ModelTensors model;
    model.blocks.resize(static_cast<size_t>(config_.n_layer));
    const auto once = [&](Part part) -> Tensor& {
        switch (part) {
            case Part::token_table:
                return model.token_table;
            case Part::position_table:
                return model.position_table;
            case Part::lm_head:
                return model.lm_head;
            case Part::final_norm:
                return model.final_norm_weight;
            default:
                return model.final_norm_bias;
        }
    };
    for (const Entry& entry : entries_)
        append(entry.layer < 0
                   ? once(entry.part)
                   : model.blocks[static_cast<size_t>(entry.layer)].*view_of(entry.part),
               view(entry, all, matrices));
    if (config_.tie_word_embeddings) model.lm_head = model.token_table;
    return model;
}

void ParameterLayout::initialize(Tensor all, uint64_t seed) const {
    float* values = all.as<float>();
    std::fill_n(values, size_, 0.0f);
    GaussianSource normal(seed);
    for (const Entry& entry : entries_) {
        float* to = values + entry.offset;
        if (entry.columns == 0) {
            if (is_norm_weight(entry.part)) std::fill_n(to, entry.rows, 1.0f);
            continue;
        }
        const bool residual = entry.part == Part::attn_out || entry.part == Part::down;
        const double deviation =
            residual ? 0.02 / std::sqrt(2.0 * static_cast<double>(config_.n_layer)) : 0.02;
        for (int64_t i = 0; i < entry.stored_rows * entry.columns; ++i)
            to[i] = static_cast<float>(deviation * normal());
    }
}

void ParameterLayout::read(Tensor all, TensorSource& source) const {
    float* values = all.as<float>();
    std::fill_n(values, size_, 0.0f);
    for (const Entry& entry : entries_) {
        const int64_t n = entry.stored_rows, k = entry.columns;
        const bool turned = entry.transposed && !source.stores_out_in();
        const Tensor stored = k == 0   ? source.take(entry.name, {n})
                              : turned ? source.take(entry.name, {k, n})
                                       : source.take(entry.name, {n, k});
        require(
            stored.dtype == Dtype::f32 || stored.dtype == Dtype::f16 || stored.dtype == Dtype::bf16,
            entry.name, ": expected f32, f16 or bf16, found ", stored);
        float* to = values + entry.offset;
        const int64_t columns = std::max<int64_t>(k, 1);
        for (int64_t i = 0; i < n; ++i)
            for (int64_t j = 0; j < columns; ++j)
                to[i * columns + j] = value_at(stored, turned ? j * n + i : i * columns + j);
        require(all_finite(std::span(to, static_cast<size_t>(n * columns))), entry.name,
                ": expected finite values, found one that is not");
        source.release_tensors();
    }
}

void ParameterLayout::write(Tensor all, const std::filesystem::path& file, Dtype dtype) const {
    SafetensorsHeader header;
    header.metadata["format"] = "pt";  // transformers asks for it
    for (const Entry& entry : entries_) {
        const int64_t n = entry.stored_rows, k = entry.columns;
        const auto bytes = static_cast<uint64_t>(n * std::max<int64_t>(k, 1)) * size_of(dtype);
        std::vector<int64_t> shape = {n};
        if (k > 0) shape = entry.transposed ? std::vector{k, n} : std::vector{n, k};
        header.tensors.push_back({prefix_ + entry.name, safetensors_name(dtype), shape,
                                  header.data_bytes, header.data_bytes + bytes});
        if (entry.part == Part::lm_head) header.tensors.back().name = entry.name;
        header.data_bytes += bytes;
    }
    AtomicFile out(file);
    ByteWriter writer(out.fd(), out.name());
    writer.write(format_safetensors_header(header));
    std::vector<float> row;
    for (const Entry& entry : entries_) {
        const float* from = all.as<float>() + entry.offset;
        const int64_t n = entry.stored_rows, k = entry.columns;
        if (!entry.transposed) {
            write_values(writer, std::span(from, static_cast<size_t>(n * std::max<int64_t>(k, 1))),
                         dtype, entry.name);
            continue;
        }
        row.resize(static_cast<size_t>(n));
        for (int64_t j = 0; j < k; ++j) {
            for (int64_t i = 0; i < n; ++i) row[static_cast<size_t>(i)] = from[i * k + j];
            write_values(writer, row, dtype, entry.name);
        }
    }
    writer.flush();
    out.commit();
}

}  // namespace hark::gpt
