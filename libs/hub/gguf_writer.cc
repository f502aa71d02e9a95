#include "hub/gguf_writer.h"

#include <algorithm>
#include <atomic>
#include <cmath>

#include "core/error.h"
#include "core/files/files.h"
#include "core/files/io.h"
#include "core/json/json.h"
#include "core/machine/cores.h"
#include "core/ranges.h"
#include "formats/gguf_output.h"
#include "formats/safetensors.h"
#include "gpt/families/config_reader.h"
#include "gpt/families/family.h"
#include "gpt/families/gguf_types.h"
#include "gpt/families/json_config.h"
#include "gpt/families/model_folder.h"
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
constexpr int64_t kQuantizationVersion = 2;  // general.quantization_version
constexpr int64_t kGemma3Period = 6;         // of layers, the last without a window

// GGUF has no architecture for Mistral: its files are those of Llama.
const gpt::Family& family_in_gguf(const DecoderConfig& config, const std::string& where) {
    return gpt::family_of(config.family == "mistral" ? "llama" : config.family, where);
}

// The layers' window; 0: none has one.
int64_t window_of(const DecoderConfig& config) {
    int64_t window = 0;
    for (const gpt::LayerConfig& layer : config.layers)
        if (layer.window < config.n_positions) window = std::max(window, layer.window);
    return window;
}

// The layers that have a window in a GGUF file of the family, if it has one.
bool slides_in_gguf(const DecoderConfig& config, int64_t layer) {
    if (config.family == "gemma2") return layer % 2 == 0;
    if (config.family == "gemma3_text") return (layer + 1) % kGemma3Period != 0;
    return config.family == "phi3";
}

bool is_gemma(const DecoderConfig& config) { return config.norm_offset != 0; }

void check_family(const DecoderConfig& config, const std::string& where) {
    constexpr const char* kFamilies[] = {"llama",   "mistral", "qwen2",  "qwen3",       "olmo2",
                                         "granite", "smollm3", "gemma2", "gemma3_text", "phi3"};
    require(contains(kFamilies, config.family), where, ": expected a model of the family ",
            joined(kFamilies), " to write as GGUF, found ", config.family,
            "; give --to safetensors and a new folder");
    const int64_t window = window_of(config);
    for (int64_t i = 0; i < config.n_layer; ++i) {
        const int64_t own = config.layers[static_cast<size_t>(i)].window;
        const bool slides = 0 < own && own < config.n_positions;
        const bool expected = window > 0 && slides_in_gguf(config, i);
        require(slides == expected && (!slides || own == window), where,
                ": GGUF cannot say that layer ", i, slides ? " has a window" : " has no window",
                " in this family");
    }
    require(!is_gemma(config) || config.attention_scale == gpt::gemma_gguf_scale(config), where,
            ": GGUF has no place for this query_pre_attn_scalar");
    for (int64_t i = 0; i < config.n_layer; ++i) {
        const bool turns = config.family != "smollm3" || (i + 1) % gpt::kSmolLm3Interval != 0;
        require((config.layers[static_cast<size_t>(i)].rope >= 0) == turns, where,
                ": GGUF cannot say that layer ", i, turns ? " has no" : " has", " positions");
    }
}

struct Ropes {
    gpt::RopeSettings all;    // of layers without a window, or of all
    double window_theta = 0;  // the base of layers with a window; 0: the same
};

Ropes ropes_of(const fs::path& folder, const DecoderConfig& of) {
    const fs::path path = folder / gpt::kConfigFile;
    const std::string where = path.string();
    const gpt::JsonConfig config(parse_json(read_file(path, size_t{1} << 20), where), where);
    const bool is_gemma3 = of.family == "gemma3_text";
    const double theta = of.family == "smollm3" ? gpt::kSmolLm3Theta
                         : is_gemma3            ? gpt::kGemma3Theta
                                                : 10000;  // where config.json has none
    Ropes ropes{config.rope(theta, "full_attention")};
    const std::string& type = ropes.all.type;
    require(type == "default" || type == "linear" || type == "llama3", where,
            ": the rope's scaling ", type,
            " is not written as GGUF, only default, linear and llama3");
    if (is_gemma3) ropes.window_theta = gpt::gemma3_window_rope(config).theta;
    return ropes;
}

// By what llama3's scaling divides the frequencies; empty for the others.
std::vector<float> rope_divisors(const DecoderConfig& config, const gpt::RopeSettings& rope) {
    std::vector<float> divisors;
    if (rope.type != "llama3") return divisors;
    const std::vector<float>& scaled = config.ropes.front().frequencies;
    for (size_t i = 0; i < scaled.size(); ++i) {
        const double plain =
            std::pow(rope.theta, -static_cast<double>(i) / static_cast<double>(scaled.size()));
        divisors.push_back(static_cast<float>(plain / scaled[i]));
    }
    return divisors;
}

void add_settings(GgufOutput& out, const DecoderConfig& c, const Ropes& ropes,
                  const std::string& name, const std::string& type) {
    const gpt::RopeSettings& rope = ropes.all;
    const std::string family = family_in_gguf(c, name).gguf, prefix = family + ".";
    out.text("general.architecture", family);
    out.text("general.type", "model");
    out.text("general.name", name);
    out.count("general.file_type", gpt::gguf_file_type(type));
    out.count("general.quantization_version", kQuantizationVersion);
    out.count(prefix + "context_length", c.n_positions);
    out.count(prefix + "embedding_length", c.n_embd);
    out.count(prefix + "block_count", c.n_layer);
    out.count(prefix + "feed_forward_length", c.n_inner);
    out.count(prefix + "attention.head_count", c.n_head);
    out.count(prefix + "attention.head_count_kv", c.n_kv_head);
    out.count(prefix + "attention.key_length", c.head_dim);
    out.count(prefix + "attention.value_length", c.head_dim);
    out.real(prefix + "attention.layer_norm_rms_epsilon", c.norm_eps);
    out.count(prefix + "vocab_size", c.n_vocab);
    out.count(prefix + "rope.dimension_count",
              2 * static_cast<int64_t>(c.ropes.front().frequencies.size()));
    out.real(prefix + "rope.freq_base", rope.theta);
    if (c.family == "granite") {
        out.real(prefix + "embedding_scale", c.embedding_scale);
        out.real(prefix + "attention.scale", c.attention_scale);
        out.real(prefix + "residual_scale", c.residual_scale);
        out.real(prefix + "logit_scale", 1 / c.logit_scale);  // they divide by it
    }
    if (window_of(c) > 0) out.count(prefix + "attention.sliding_window", window_of(c));
    if (c.attention_soft_cap > 0) out.real(prefix + "attn_logit_softcapping", c.attention_soft_cap);
    if (c.logit_soft_cap > 0) out.real(prefix + "final_logit_softcapping", c.logit_soft_cap);
    if (ropes.window_theta > 0) out.real(prefix + "rope.freq_base_swa", ropes.window_theta);
    if (rope.type != "linear") return;
    out.text(prefix + "rope.scaling.type", "linear");
    out.real(prefix + "rope.scaling.factor", rope.factor);
}

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
    check_family(config, from.string());
    const Ropes ropes = ropes_of(from, config);
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
