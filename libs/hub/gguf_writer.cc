#include "hub/gguf_writer.h"

#include <algorithm>
#include <atomic>

#include "core/error.h"
#include "core/files/files.h"
#include "core/files/io.h"
#include "core/machine/cores.h"
#include "core/ranges.h"
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

bool is_norm(Part part) {
    constexpr Part kNorms[] = {Part::final_norm,   Part::attn_norm, Part::attn_post_norm,
                               Part::mlp_norm,     Part::q_norm,    Part::k_norm,
                               Part::mlp_post_norm};
    return contains(kNorms, part);
}

Tensor described(const TensorSpec& spec, Dtype dtype) {
    return spec.columns > 0 ? Tensor(nullptr, dtype, {spec.rows, spec.columns})
                            : Tensor(nullptr, dtype, {spec.rows});
}

class TensorWriter {
  public:
    TensorWriter(gpt::ModelFile& model, const AtomicFile& file, const std::string& type)
        : model_(model), out_(file.fd(), file.name()), type_(type) {}

    void bytes(const std::string& bytes) { out_.write(bytes); }
    void tensor(const TensorSpec& spec) {
        const DecoderConfig& c = model_.config();
        TensorSource& source = model_.tensors();
        std::vector<float> values =
            values_of(source, {spec.name, shape_of(spec), spec.is_matrix(), spec.in_out});
        if (is_norm(spec.part))
            for (float& value : values) value += c.norm_offset;
        if (family_in_gguf(c, source.where()).gguf_interleaves) {
            const int64_t columns = std::max<int64_t>(spec.columns, 1);
            if (spec.part == Part::q || spec.part == Part::q_bias)
                values = interleaved(values, c.n_head, columns);
            if (spec.part == Part::k || spec.part == Part::k_bias)
                values = interleaved(values, c.n_kv_head, columns);
        }
        write(values, described(spec, gguf_type_of(spec, c, type_)),
              concat(source.where(), ": ", spec.name));
    }
    void write(const std::vector<float>& values, const Tensor& as, const std::string& where) {
        if (is_quantized(as.dtype))
            write_blocks(values, as);
        else
            write_values(out_, values, as.dtype, where);
        out_.write(std::string(GgufOutput::padding(as.bytes()), '\0'));
    }
    void flush() { out_.flush(); }

  private:
    static std::vector<int64_t> shape_of(const TensorSpec& spec) {
        return spec.columns > 0 ? std::vector{spec.rows, spec.columns} : std::vector{spec.rows};
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
    std::string type_;
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
    const std::vector<TensorSpec> specs = gpt::tensor_specs(config);
    GgufOutput header;
    add_settings(header, config, ropes, fs::absolute(from).lexically_normal().filename().string(),
                 type);
    add_vocabulary(header, from, config.n_vocab, config.eos_token_ids);
    const Tensor divisors_as(nullptr, Dtype::f32, {std::ssize(divisors)});
    for (const TensorSpec& spec : specs)
        header.tensor(spec.gguf, described(spec, gguf_type_of(spec, config, type)));
    if (!divisors.empty()) header.tensor(kRopeDivisors, divisors_as);
    AtomicFile file(to);
    TensorWriter out(model, file, type);
    out.bytes(header.header());
    for (const TensorSpec& spec : specs) out.tensor(spec);
    if (!divisors.empty()) out.write(divisors, divisors_as, kRopeDivisors);
    out.flush();
    file.commit();
}

}  // namespace hark::models
