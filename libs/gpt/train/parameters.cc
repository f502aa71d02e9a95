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

// One of a block's tensors; its name is without the block's.
struct BlockEntry {
    ParameterLayout::Entry entry;
    Tensor BlockTensors::*tensor;
};

// A block's tensors, as one of `ranks` has them. In a matrix sliced by columns each row is a chunk;
// queries, keys and values are a chunk each.
std::vector<BlockEntry> block_entries(const Config& config, int64_t ranks) {
    const int64_t c = config.n_embd, heads = c / ranks, inner = config.n_inner / ranks;
    const auto vector = [](const char* name, int64_t rows, int64_t tp_chunks = 0) {
        return ParameterLayout::Entry{.name = name, .rows = rows, .tp_chunks = tp_chunks};
    };
    const auto matrix = [](const char* name, int64_t rows, int64_t columns, int64_t tp_chunks) {
        return ParameterLayout::Entry{.name = name,
                                      .rows = rows,
                                      .columns = columns,
                                      .transposed = true,
                                      .tp_chunks = tp_chunks};
    };
    return {{vector("ln_1.weight", c), &BlockTensors::ln_1_weight},
            {vector("ln_1.bias", c), &BlockTensors::ln_1_bias},
            {matrix("attn.c_attn.weight", 3 * heads, c, 3), &BlockTensors::attn_weight},
            {vector("attn.c_attn.bias", 3 * heads, 3), &BlockTensors::attn_bias},
            {matrix("attn.c_proj.weight", c, heads, c), &BlockTensors::proj_weight},
            {vector("attn.c_proj.bias", c), &BlockTensors::proj_bias},
            {vector("ln_2.weight", c), &BlockTensors::ln_2_weight},
            {vector("ln_2.bias", c), &BlockTensors::ln_2_bias},
            {matrix("mlp.c_fc.weight", inner, c, 1), &BlockTensors::fc_weight},
            {vector("mlp.c_fc.bias", inner, 1), &BlockTensors::fc_bias},
            {matrix("mlp.c_proj.weight", c, inner, c), &BlockTensors::out_weight},
            {vector("mlp.c_proj.bias", c), &BlockTensors::out_bias}};
}

std::string name_in_block(int64_t i, const std::string& name) { return concat("h.", i, ".", name); }

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

ParameterLayout::ParameterLayout(const Config& config, int64_t ranks)
    : config_(config), ranks_(ranks) {
    require(ranks > 0 && config.n_head % ranks == 0 && config.n_inner % ranks == 0,
            "parameters: expected ranks that divide ", config.n_head, " heads and ", config.n_inner,
            " channels, found ", ranks);
    add_tables();
    const auto add_of_blocks = [&](const auto& takes) {
        for (int64_t i = 0; i < config.n_layer; ++i)
            for (auto& [entry, tensor] : block_entries(config, ranks)) {
                if (!takes(entry)) continue;
                entry.name = name_in_block(i, entry.name);
                add(entry);
            }
    };
    const auto is_matrix = [](const Entry& entry) { return entry.columns > 0; };
    const auto is_sliced = [&](const Entry& entry) { return ranks > 1 && entry.tp_chunks > 0; };
    add_of_blocks(is_matrix);
    decayed_ = size_;
    add_of_blocks([&](const Entry& entry) { return !is_matrix(entry) && is_sliced(entry); });
    sliced_ = size_;
    add_of_blocks([&](const Entry& entry) { return !is_matrix(entry) && !is_sliced(entry); });
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
    for (int64_t i = 0; i < config_.n_layer; ++i) {
        BlockTensors& h = model.h.emplace_back();
        for (const auto& [entry, tensor] : block_entries(config_, ranks_))
            h.*tensor = view(name_in_block(i, entry.name));
    }
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
