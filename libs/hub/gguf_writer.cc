#include "hub/gguf_writer.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <optional>

#include "core/error.h"
#include "core/files/files.h"
#include "core/files/io.h"
#include "core/machine/cores.h"
#include "core/profile/profile.h"
#include "formats/gguf_output.h"
#include "formats/safetensors.h"
#include "gpt/families/family.h"
#include "gpt/families/gguf_types.h"
#include "hub/gguf_settings.h"
#include "hub/gguf_vocabulary.h"
#include "hub/tensor_list.h"
#include "kernels/quant/quantize.h"
#include "kernels/runtime/parallel.h"

namespace hark::models {
namespace {

namespace fs = std::filesystem;
using gpt::DecoderConfig;
using gpt::Part;
using gpt::TensorSpec;

constexpr const char* kRopeDivisors = "rope_freqs.weight";

// Rows of heads in halves in the order of interleaved rotary pairs: row 2 j is row j, row 2 j + 1
// row j + D / 2.
std::vector<float> interleaved(const std::vector<float>& values, int64_t heads, int64_t columns) {
    std::vector<float> turned(values.size());
    const int64_t d = std::ssize(values) / columns / heads;
    for (int64_t row = 0; row < heads * d; ++row) {
        const int64_t j = row % d, from = row - j + (j % 2 == 0 ? j / 2 : j / 2 + d / 2);
        std::copy_n(values.begin() + from * columns, columns, turned.begin() + row * columns);
    }
    return turned;
}

// A tensor of the file.
struct GgufTensor {
    std::string name;
    Dtype dtype = Dtype::f32;
    std::vector<TensorSpec> parts;                   // one, or one of each expert or head
    bool as_stored = false;                          // blocks of the folder, which stay as they are
    std::optional<TensorSpec> whole = std::nullopt;  // of heads: the folder's matrix of them all

    // What the file says of it; as_part: of a part.
    Tensor described(bool as_part = false) const {
        const TensorSpec& part = parts.front();
        Tensor tensor = part.columns > 0 ? Tensor(nullptr, dtype, {part.rows, part.columns})
                                         : Tensor(nullptr, dtype, {part.rows});
        if (as_part || part.expert < 0) return tensor;
        std::copy_backward(tensor.shape.begin(), tensor.shape.begin() + tensor.rank,
                           tensor.shape.begin() + tensor.rank + 1);
        tensor.shape[0] = std::ssize(parts);
        ++tensor.rank;
        return tensor;
    }
};

// gpt-oss's experts: other blocks are those of a quantised folder, which get the file's types.
bool has_own_blocks(gpt::ModelFile& model, const TensorSpec& spec) {
    if (spec.expert < 0 || model.config().family != "gpt_oss") return false;
    const Dtype stored = gpt::take(model.tensors(), spec).dtype;
    model.tensors().release_tensors();
    return stored == Dtype::mxfp4;
}

// The folder's products of all heads' keys and values, by layer.
std::map<int64_t, TensorSpec> head_products(const DecoderConfig& config) {
    std::map<int64_t, TensorSpec> products;
    for (const TensorSpec& spec : gpt::tensor_specs(config))
        if (spec.part == Part::kv_b) products[spec.layer] = spec;
    return products;
}

std::vector<GgufTensor> tensors_of(gpt::ModelFile& model, const std::string& type) {
    std::vector<GgufTensor> tensors;
    std::map<std::string, size_t> places;
    const std::map<int64_t, TensorSpec> wholes = head_products(model.config());
    DecoderConfig config = model.config();
    config.latent.by_head = config.is_latent();
    for (const TensorSpec& spec : gpt::tensor_specs(config)) {
        const auto [place, is_new] = places.emplace(spec.gguf, tensors.size());
        if (is_new) {
            const bool own = has_own_blocks(model, spec);
            const Dtype dtype = own ? Dtype::mxfp4 : gguf_type_of(spec, config, type);
            tensors.push_back({spec.gguf, dtype, {}, own});
            if (spec.part == Part::k_b || spec.part == Part::v_b)
                tensors.back().whole = wholes.at(spec.layer);
        }
        tensors[place->second].parts.push_back(spec);
    }
    return tensors;
}

class TensorWriter {
  public:
    TensorWriter(gpt::ModelFile& model, const AtomicFile& file)
        : model_(model), out_(file.fd(), file.name()) {}

    void bytes(const std::string& bytes) { out_.write(bytes); }
    // A part of it at a time.
    void tensor(const GgufTensor& tensor) {
        if (tensor.whole)
            heads(tensor);
        else
            for (const TensorSpec& part : tensor.parts)
                if (tensor.as_stored)
                    copy(part);
                else
                    write(values(part), tensor.described(true), in_messages(part));
        pad(tensor.described());
    }
    void tensor(const std::vector<float>& values, const Tensor& as, const std::string& name) {
        write(values, as, name);
        pad(as);
    }
    void flush() { out_.flush(); }

  private:
    std::string in_messages(const TensorSpec& spec) const {
        return concat(model_.tensors().where(), ": ", spec.name);
    }
    // The folder has the products of all heads' keys and values in one matrix, head by head the
    // rows of keys, which are turned, and of values.
    void heads(const GgufTensor& tensor) {
        const gpt::LatentConfig& of = model_.config().latent;
        const TensorSpec& whole = *tensor.whole;
        const std::vector<float> all =
            values_of(model_.tensors(), {whole.name, {whole.rows, whole.columns}, true});
        const auto begin_of = [&](int64_t row) { return all.begin() + row * of.channels; };
        for (const TensorSpec& part : tensor.parts) {
            const int64_t first = part.expert * (of.plain + of.value);
            const int64_t values = first + of.plain;
            const std::vector<float> rows =
                part.part == Part::k_b
                    ? turned({begin_of(first), begin_of(values)}, of.plain, of.channels)
                    : std::vector(begin_of(values), begin_of(values + of.value));
            write(rows, tensor.described(true), in_messages(whole));
        }
    }
    void copy(const TensorSpec& spec) {
        const Tensor stored = gpt::take(model_.tensors(), spec);
        out_.write(stored.data, stored.bytes());
        model_.tensors().release_tensors();
    }
    // In the file's form.
    std::vector<float> values(const TensorSpec& spec) {
        const DecoderConfig& c = model_.config();
        TensorSource& source = model_.tensors();
        std::vector<int64_t> shape = {spec.rows};
        if (spec.columns > 0) shape.push_back(spec.columns);
        std::vector<float> values =
            values_of(source, {spec.name, shape, spec.is_matrix(), spec.in_out});
        if (spec.is_norm())
            for (float& value : values) value += c.norm_offset;
        if (!family_in_gguf(c, source.where()).gguf_interleaves) return values;
        const int64_t columns = std::max<int64_t>(spec.columns, 1);
        if (spec.part == Part::q || spec.part == Part::q_bias)
            return interleaved(values, c.n_head, columns);
        if (spec.part == Part::k || spec.part == Part::k_bias)
            return interleaved(values, c.n_kv_head, columns);
        return values;
    }
    void write(const std::vector<float>& values, const Tensor& as, const std::string& where) {
        const ProfileSpan span("convert");
        if (is_quantized(as.dtype))
            write_blocks(values, as);
        else
            write_values(out_, values, as.dtype, where);
    }
    void pad(const Tensor& tensor) {
        out_.write(std::string(GgufOutput::padding(tensor.bytes()), '\0'));
    }
    // On all processors: the search of scales takes longer than the disk.
    void write_blocks(const std::vector<float>& values, const Tensor& as) {
        const int64_t columns = as.dim(1);
        const size_t row = row_bytes(as.dtype, columns);
        std::vector<std::byte> blocks(as.bytes());
        const auto make_row = [&](int64_t i) {
            quantize(blocks.data() + static_cast<size_t>(i) * row, values.data() + i * columns,
                     as.dtype, columns);
        };
        std::atomic<int64_t> failed = -1;
        parallel_for(available_cores(), as.dim(0), [&](int64_t i) {
            try {
                make_row(i);
            } catch (const Error&) {
                failed = i;
            }
        });
        if (failed >= 0) make_row(failed);  // throws again
        out_.write(blocks.data(), blocks.size());
    }

    gpt::ModelFile& model_;
    ByteWriter out_;
};

}  // namespace

void write_gguf(gpt::ModelFile& model, const fs::path& from, const std::string& type,
                const fs::path& to) {
    require(std::string(model.format()) == "Hugging Face", from.string(),
            ": GGUF files are written from Hugging Face's folders, found one of ", model.format());
    const DecoderConfig& config = model.config();
    check_written(config, from.string());
    const GgufRopes ropes = gguf_ropes(from, config);
    const std::vector<float> divisors = rope_divisors(config, ropes.all);
    const std::vector<GgufTensor> tensors = tensors_of(model, type);
    GgufOutput header;
    add_settings(header, config, ropes, fs::absolute(from).lexically_normal().filename().string(),
                 type);
    if (!gpt::embedding_files(from).empty())
        header.count(concat(family_in_gguf(config, from.string()).gguf, ".pooling_type"),
                     gpt::gguf_pooling_type(model.embedding_settings().pooling));
    add_vocabulary(header, from, config.n_vocab, config.eos_token_ids);
    const Tensor divisors_as(nullptr, Dtype::f32, {std::ssize(divisors)});
    for (const GgufTensor& tensor : tensors) header.tensor(tensor.name, tensor.described());
    if (!divisors.empty()) header.tensor(kRopeDivisors, divisors_as);
    AtomicFile file(to);
    TensorWriter out(model, file);
    out.bytes(header.header());
    for (const GgufTensor& tensor : tensors) out.tensor(tensor);
    if (!divisors.empty()) out.tensor(divisors, divisors_as, kRopeDivisors);
    out.flush();
    file.commit();
}

}  // namespace hark::models
