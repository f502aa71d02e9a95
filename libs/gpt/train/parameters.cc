#include "gpt/train/parameters.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "core/error.h"
#include "core/files.h"
#include "core/finite.h"
#include "core/half.h"
#include "core/io.h"
#include "core/random.h"
#include "formats/safetensors.h"

namespace hark::gpt {
namespace {

// Rows of logits are then whole lines of memory, which a GPU multiplies faster.
constexpr int64_t kVocabMultiple = 64;

float value_of(const Tensor& t, int64_t i) {
    if (t.dtype == Dtype::f16) return to_float(t.as<f16_t>()[i]);
    if (t.dtype == Dtype::bf16) return to_float(t.as<bf16_t>()[i]);
    return t.as<float>()[i];
}

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

// The view of a block that a part is.
Tensor BlockTensors::*view_of(Part part) {
    switch (part) {
        case Part::attn_norm:
            return &BlockTensors::ln_1_weight;
        case Part::attn_norm_bias:
            return &BlockTensors::ln_1_bias;
        case Part::qkv:
            return &BlockTensors::attn_weight;
        case Part::qkv_bias:
            return &BlockTensors::attn_bias;
        case Part::attn_out:
            return &BlockTensors::proj_weight;
        case Part::attn_out_bias:
            return &BlockTensors::proj_bias;
        case Part::mlp_norm:
            return &BlockTensors::ln_2_weight;
        case Part::mlp_norm_bias:
            return &BlockTensors::ln_2_bias;
        case Part::up:
            return &BlockTensors::fc_weight;
        case Part::up_bias:
            return &BlockTensors::fc_bias;
        case Part::down:
            return &BlockTensors::out_weight;
        case Part::down_bias:
            return &BlockTensors::out_bias;
        default:
            fail("internal error: a tensor that training has no place for");
    }
}

// How one of `ranks` has a tensor of a block. In a matrix sliced by columns each row is a chunk;
// queries, keys and values are a chunk each.
ParameterLayout::Entry slice_of(const TensorSpec& spec, int64_t ranks) {
    ParameterLayout::Entry entry{.name = spec.name,
                                 .rows = spec.rows,
                                 .columns = spec.columns,
                                 .transposed = spec.in_out,
                                 .part = spec.part,
                                 .layer = spec.layer};
    switch (spec.part) {
        case Part::qkv:
        case Part::qkv_bias:
            entry.tp_chunks = 3;
            entry.rows /= ranks;
            break;
        case Part::up:
        case Part::up_bias:
            entry.tp_chunks = 1;
            entry.rows /= ranks;
            break;
        case Part::attn_out:
        case Part::down:
            entry.tp_chunks = spec.rows;
            entry.columns /= ranks;
            break;
        default:
            break;
    }
    return entry;
}

}  // namespace

void ParameterLayout::add(Entry entry) {
    entry.offset = size_;
    if (entry.stored_rows == 0) entry.stored_rows = entry.rows;
    size_ += entry.size();
    places_[entry.name] = entries_.size();
    entries_.push_back(std::move(entry));
}

void ParameterLayout::add_tables() {
    const auto table = [&](const char* name, int64_t rows, int64_t stored) {
        add({.name = name, .rows = rows, .columns = config_.n_embd, .stored_rows = stored});
    };
    padded_vocab_ = (config_.n_vocab + kVocabMultiple - 1) / kVocabMultiple * kVocabMultiple;
    table("wte.weight", padded_vocab_, config_.n_vocab);
    table("wpe.weight", config_.n_positions, config_.n_positions);
    if (!config_.tie_word_embeddings) table("lm_head.weight", padded_vocab_, config_.n_vocab);
    tables_ = size_;
}

ParameterLayout::ParameterLayout(const DecoderConfig& config, int64_t ranks) : config_(config) {
    require(config.family == "gpt2", "training: expected a GPT-2 model, found ", config.family);
    require(ranks > 0 && config.n_head % ranks == 0 && config.n_inner % ranks == 0,
            "parameters: expected ranks that divide ", config.n_head, " heads and ", config.n_inner,
            " channels, found ", ranks);
    add_tables();
    std::vector<Entry> blocks;
    for (const TensorSpec& spec : tensor_specs(config))
        if (spec.layer >= 0) blocks.push_back(slice_of(spec, ranks));
    const auto add_those = [&](const auto& takes) {
        for (const Entry& entry : blocks)
            if (takes(entry)) add(entry);
    };
    const auto is_matrix = [](const Entry& entry) { return entry.columns > 0; };
    const auto is_sliced = [&](const Entry& entry) { return ranks > 1 && entry.tp_chunks > 0; };
    add_those(is_matrix);
    decayed_ = size_;
    add_those([&](const Entry& entry) { return !is_matrix(entry) && is_sliced(entry); });
    sliced_ = size_;
    add_those([&](const Entry& entry) { return !is_matrix(entry) && !is_sliced(entry); });
    add({.name = "ln_f.weight", .rows = config.n_embd});
    add({.name = "ln_f.bias", .rows = config.n_embd});
}

ModelTensors ParameterLayout::views(Tensor all, Tensor matrices) const {
    require(all.dtype == Dtype::f32 && all.size() == size_, "parameters: expected f32 (", size_,
            "), found ", all);
    require(!matrices || matrices.size() == decayed_, "parameters: expected matrices (", decayed_,
            "), found ", matrices);
    const auto view = [&](const std::string& name) {
        const Entry& entry = at(name);
        const bool multiplied = matrices && entry.columns > 0 && name != "wpe.weight";
        const Tensor part =
            (multiplied ? matrices : all).slice(entry.offset, entry.offset + entry.size());
        return entry.columns > 0 ? part.reshaped({entry.rows, entry.columns}) : part;
    };
    ModelTensors model;
    model.wte = view("wte.weight");
    model.wpe = view("wpe.weight");
    model.lm_head = config_.tie_word_embeddings ? model.wte : view("lm_head.weight");
    model.h.resize(static_cast<size_t>(config_.n_layer));
    for (const Entry& entry : entries_)
        if (entry.layer >= 0)
            model.h[static_cast<size_t>(entry.layer)].*view_of(entry.part) = view(entry.name);
    model.ln_f_weight = view("ln_f.weight");
    model.ln_f_bias = view("ln_f.bias");
    return model;
}

void ParameterLayout::initialize(Tensor all, uint64_t seed) const {
    float* values = all.as<float>();
    std::fill_n(values, size_, 0.0f);
    GaussianSource normal(seed);
    for (const Entry& entry : entries_) {
        float* to = values + entry.offset;
        if (entry.columns == 0) {
            if (entry.name.ends_with(".weight")) std::fill_n(to, entry.rows, 1.0f);
            continue;
        }
        const bool residual = entry.name.ends_with("c_proj.weight");
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
                to[i * columns + j] = value_of(stored, turned ? j * n + i : i * columns + j);
        require(all_finite(std::span(to, static_cast<size_t>(n * columns))), entry.name,
                ": expected finite values, found one that is not");
        source.forget_taken();
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
        header.tensors.push_back({"transformer." + entry.name, safetensors_name(dtype), shape,
                                  header.data_bytes, header.data_bytes + bytes});
        if (entry.name == "lm_head.weight") header.tensors.back().name = entry.name;
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
