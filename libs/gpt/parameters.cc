#include "gpt/parameters.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "core/error.h"
#include "core/files.h"
#include "core/finite.h"
#include "core/half.h"
#include "core/io.h"
#include "core/random.h"
#include "core/safetensors.h"

namespace hark::gpt {
namespace {

// So that rows of logits are whole lines of memory, which a GPU multiplies faster.
constexpr int64_t kVocabMultiple = 64;

float value_of(const Tensor& t, int64_t i) {
    if (t.dtype == Dtype::f16) return to_float(t.as<f16_t>()[i]);
    if (t.dtype == Dtype::bf16) return to_float(t.as<bf16_t>()[i]);
    return t.as<float>()[i];
}

void write_values(ByteWriter& writer, std::span<const float> values, Dtype dtype,
                  const std::string& name) {
    if (dtype == Dtype::f32) return writer.write(values.data(), values.size_bytes());
    std::vector<uint16_t> rounded;
    rounded.reserve(values.size());
    for (const float value : values) {
        rounded.push_back(dtype == Dtype::f16 ? to_f16(value).bits : to_bf16(value).bits);
        require(dtype != Dtype::f16 || std::isfinite(to_float(f16_t{rounded.back()})), name,
                ": expected values that f16 can hold, found ", value);
    }
    writer.write(rounded.data(), rounded.size() * sizeof(uint16_t));
}

// Box & Muller 1958.
class Normal {
  public:
    explicit Normal(uint64_t seed) : random_(seed) {}
    double operator()() {
        if (kept_) {
            kept_ = false;
            return second_;
        }
        const double radius = std::sqrt(-2 * std::log(1 - random_.uniform()));
        const double angle = 2 * M_PI * random_.uniform();
        second_ = radius * std::sin(angle);
        kept_ = true;
        return radius * std::cos(angle);
    }

  private:
    Random random_;
    double second_ = 0;
    bool kept_ = false;
};

}  // namespace

int64_t ParameterLayout::add(const std::string& name, int64_t rows, int64_t columns,
                             bool transposed) {
    const bool table = name == "wte.weight" || name == "lm_head.weight";
    const int64_t stored = table ? config_.n_vocab : rows;
    entries_.push_back({name, size_, rows, columns, stored, transposed});
    size_ += rows * std::max<int64_t>(columns, 1);
    return size_;
}

// views() relies on this order.
ParameterLayout::ParameterLayout(const Config& config) : config_(config) {
    const int64_t c = config.n_embd, inner = config.n_inner;
    padded_vocab_ = (config.n_vocab + kVocabMultiple - 1) / kVocabMultiple * kVocabMultiple;
    add("wte.weight", padded_vocab_, c);
    add("wpe.weight", config.n_positions, c);
    if (!config.tie_word_embeddings) add("lm_head.weight", padded_vocab_, c);
    tables_ = size_;
    for (int64_t i = 0; i < config.n_layer; ++i) {
        const std::string h = concat("h.", i, ".");
        add(h + "attn.c_attn.weight", 3 * c, c, true);
        add(h + "attn.c_proj.weight", c, c, true);
        add(h + "mlp.c_fc.weight", inner, c, true);
        add(h + "mlp.c_proj.weight", c, inner, true);
    }
    decayed_ = size_;
    for (int64_t i = 0; i < config.n_layer; ++i) {
        const std::string h = concat("h.", i, ".");
        add(h + "ln_1.weight", c, 0);
        add(h + "ln_1.bias", c, 0);
        add(h + "attn.c_attn.bias", 3 * c, 0);
        add(h + "attn.c_proj.bias", c, 0);
        add(h + "ln_2.weight", c, 0);
        add(h + "ln_2.bias", c, 0);
        add(h + "mlp.c_fc.bias", inner, 0);
        add(h + "mlp.c_proj.bias", c, 0);
    }
    add("ln_f.weight", c, 0);
    add("ln_f.bias", c, 0);
}

ModelTensors ParameterLayout::views(Tensor all, Tensor matrices) const {
    require(all.dtype == Dtype::f32 && all.size() == size_, "parameters: expected f32 (", size_,
            "), found ", all);
    require(!matrices || matrices.size() == decayed_, "parameters: expected matrices (", decayed_,
            "), found ", matrices);
    size_t next = 0;
    const auto take = [&] {
        const Entry& entry = entries_[next++];
        const int64_t columns = std::max<int64_t>(entry.columns, 1), end = entry.rows * columns;
        const bool multiplied = matrices && entry.columns > 0 && entry.name != "wpe.weight";
        const Tensor part = (multiplied ? matrices : all).slice(entry.offset, entry.offset + end);
        return entry.columns > 0 ? part.reshaped({entry.rows, columns}) : part;
    };
    ModelTensors model;
    model.wte = take();
    model.wpe = take();
    model.lm_head = config_.tie_word_embeddings ? model.wte : take();
    model.h.resize(static_cast<size_t>(config_.n_layer));
    for (BlockTensors& h : model.h)
        for (Tensor* t : {&h.attn_weight, &h.proj_weight, &h.fc_weight, &h.out_weight}) *t = take();
    for (BlockTensors& h : model.h)
        for (Tensor* t : {&h.ln_1_weight, &h.ln_1_bias, &h.attn_bias, &h.proj_bias, &h.ln_2_weight,
                          &h.ln_2_bias, &h.fc_bias, &h.out_bias})
            *t = take();
    model.ln_f_weight = take();
    model.ln_f_bias = take();
    return model;
}

void ParameterLayout::initialize(Tensor all, uint64_t seed) const {
    float* values = all.as<float>();
    std::fill_n(values, size_, 0.0f);
    Normal normal(seed);
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
        const Tensor stored = k == 0             ? source.take(entry.name, {n})
                              : entry.transposed ? source.take(entry.name, {k, n})
                                                 : source.take(entry.name, {n, k});
        require(
            stored.dtype == Dtype::f32 || stored.dtype == Dtype::f16 || stored.dtype == Dtype::bf16,
            entry.name, ": expected f32, f16 or bf16, found ", stored);
        float* to = values + entry.offset;
        const int64_t columns = std::max<int64_t>(k, 1);
        for (int64_t i = 0; i < n; ++i)
            for (int64_t j = 0; j < columns; ++j)
                to[i * columns + j] =
                    value_of(stored, entry.transposed ? j * n + i : i * columns + j);
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
