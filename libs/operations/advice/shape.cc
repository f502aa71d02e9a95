#include "operations/advice/shape.h"

#include <algorithm>
#include <map>

#include "core/error.h"
#include "core/files/files.h"
#include "core/json/json.h"
#include "core/models/models.h"
#include "core/models/published_models.h"
#include "gpt/families/gguf_types.h"
#include "gpt/families/model_folder.h"
#include "gpt/families/published_shapes.h"
#include "hub/model_handle.h"
#include "hub/tensor_list.h"

namespace hark::advice {
namespace {

namespace fs = std::filesystem;

constexpr const char *kInt8 = "int8", *kFp8 = "fp8";

WeightKind kind_of(Dtype dtype) {
    switch (dtype) {
        case Dtype::f32:
            return WeightKind::f32;
        case Dtype::f16:
        case Dtype::bf16:
            return WeightKind::half;
        case Dtype::i8:
            return WeightKind::int8;
        case Dtype::fp8:
            return WeightKind::fp8;
        case Dtype::q8_0:
            return WeightKind::q8_0;
        default:
            return block_size(dtype).values == 256 ? WeightKind::k : WeightKind::q4;
    }
}

// int8 and fp8 have a factor for each row.
double bytes_of(Dtype dtype, int64_t rows, int64_t columns) {
    const double values =
        static_cast<double>(rows) * static_cast<double>(std::max(columns, int64_t{1}));
    if (columns == 0) return 4 * values;
    if (has_row_scales(dtype)) return values + 4 * static_cast<double>(rows);
    const BlockSize block = block_size(dtype);
    return values / static_cast<double>(block.values) * static_cast<double>(block.bytes);
}

Group whisper_group(const models::ModelTensor& tensor) {
    const std::string& name = tensor.name;
    if (!tensor.matrix) return Group::rows;
    if (name.starts_with("encoder.")) return Group::encoder;
    if (name.starts_with("decoder.embed_tokens")) return Group::head;
    const bool cross = name.find("encoder_attn.k_proj") != name.npos ||
                       name.find("encoder_attn.v_proj") != name.npos;
    return cross ? Group::cross_kv : Group::layers;
}

Group gpt_group(const gpt::TensorSpec& spec, const gpt::DecoderConfig& config) {
    if (!spec.is_matrix()) return Group::rows;
    if (spec.part == gpt::Part::lm_head) return Group::head;
    if (spec.part == gpt::Part::token_table)
        return config.tie_word_embeddings ? Group::head : Group::rows;
    return spec.part >= gpt::Part::expert_gate ? Group::experts : Group::layers;
}

// The name of a published Whisper model's size.
std::string whisper_size(const std::string& name) {
    const PublishedModel* model = find_published_model(name);
    return model && model->kind == std::string("whisper") ? model->name : "";
}

// Published names of shapes that are known by another name.
std::string shape_name(const std::string& name) {
    static const std::map<std::string, std::string> kNames = {{"gpt2", "gpt2-124m"},
                                                              {"gpt2-medium", "gpt2-355m"},
                                                              {"gpt2-large", "gpt2-774m"},
                                                              {"gpt2-xl", "gpt2-1558m"}};
    const PublishedModel* model = find_published_model(name);
    const auto known = kNames.find(model ? model->name : name);
    return known == kNames.end() ? name : known->second;
}

std::optional<Shape> published_shape(const std::string& name) {
    if (const gpt::PublishedShape* shape = gpt::find_shape(shape_name(name)))
        return Shape(name, gpt::parse_config(shape->config, shape->name));
    const std::string size = whisper_size(name);
    if (size.empty() || size.starts_with("distil")) return {};
    // large-v1 has large-v2's shape.
    return Shape(name, whisper::official_config(size == "large-v1" ? "large-v2" : size));
}

Shape shape_of_config(const fs::path& path) {
    const std::string text = read_file(path, size_t{1} << 20);
    const auto root = parse_json(text, path.string());
    const fs::path whole = fs::absolute(path).lexically_normal();
    const std::string name =
        whole.filename() == gpt::kConfigFile ? whole.parent_path().filename() : whole.stem();
    if (root.is_object() && root.value("model_type", "") == "whisper")
        return Shape(name, whisper::parse_config(text, path.string()));
    return Shape(name, gpt::parse_config(text, path.string()));
}

Shape shape_of_files(const fs::path& path, const std::string& name) {
    const models::ModelHandle model = models::open_any_model(path);
    TensorSource& source = model.tensors();
    std::map<std::string, const models::ModelTensor*> tensors;
    const std::vector<models::ModelTensor> list = models::tensor_list(model);
    for (const models::ModelTensor& tensor : list) tensors[tensor.name] = &tensor;
    const auto stored = [&](const std::string& tensor) {
        const Dtype dtype = source.stores_int8(tensor)
                                ? Dtype::i8
                                : models::take(source, *tensors.at(tensor)).dtype;
        source.release_tensors();
        return dtype;
    };
    Shape shape =
        model.whisper ? Shape(name, model.whisper->config()) : Shape(name, model.gpt->config());
    shape.set_stored(stored);
    return shape;
}

}  // namespace

double Weights::total() const {
    double sum = 0;
    for (const double group : bytes) sum += group;
    return sum;
}

Shape::Shape(std::string name, const whisper::Config& config)
    : name_(std::move(name)), whisper_(config) {
    for (const models::ModelTensor& tensor : models::tensor_list(config)) {
        const int64_t rows = tensor.shape[0];
        matrices_.push_back({tensor.name, whisper_group(tensor),
                             tensor.matrix ? rows : tensor.size(),
                             tensor.matrix ? tensor.size() / rows : 0, tensor.shape.size() == 3});
    }
}

Shape::Shape(std::string name, const gpt::DecoderConfig& config)
    : name_(std::move(name)), gpt_(config) {
    for (const gpt::TensorSpec& spec : gpt::tensor_specs(config)) {
        matrices_.push_back({spec.name, gpt_group(spec, config), spec.rows,
                             spec.is_matrix() ? spec.columns : 0, false, spec});
        // Positions are f32 rows.
        if (!spec.is_matrix()) matrices_.back().rows *= std::max(spec.columns, int64_t{1});
        // gpt-oss is published with its experts in these blocks.
        if (config.family == "gpt_oss" && matrices_.back().group == Group::experts)
            matrices_.back().stored = Dtype::mxfp4;
    }
    name_stored();
}

// The type that has most values of the layers' matrices, and of the experts' if there are any.
void Shape::name_stored() {
    std::map<Dtype, double> values;
    for (const Matrix& matrix : matrices_)
        if (matrix.group != Group::rows && matrix.group != Group::head)
            values[matrix.stored] +=
                static_cast<double>(matrix.rows) * static_cast<double>(matrix.columns);
    const auto most =
        std::max_element(values.begin(), values.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; });
    stored_ = most->first == Dtype::i8 ? kInt8 : hark::name_of(most->first);
}

std::vector<std::string> Shape::types(bool is_gpu, bool is_hopper) const {
    if (stored_ != "f32" && stored_ != "f16" && stored_ != "bf16") return {"auto"};
    std::vector<std::string> types = {"auto"};
    if (!is_gpu) types.push_back("f32");
    for (const char* type : {"bf16", kInt8}) types.push_back(type);
    if (is_hopper) types.push_back(kFp8);
    types.push_back("q8_0");
    types.push_back(is_whisper() ? "q4_0" : "q4_k_m");
    return types;
}

// f16 stands for all types of 16 bits, and for f32 that `auto` keeps in them.
Dtype Shape::dtype_of(const Matrix& matrix, const std::string& type) const {
    if (matrix.columns == 0 || type == "f32") return Dtype::f32;
    if (type == "auto") return matrix.stored == Dtype::f32 ? Dtype::f16 : matrix.stored;
    if (type == "f16" || type == "bf16") return Dtype::f16;
    if (type == kInt8) return Dtype::i8;
    if (matrix.is_convolution) return Dtype::f16;
    if (type == kFp8) return Dtype::fp8;
    return is_whisper() ? dtype_named(type) : gpt::gguf_type_of(matrix.spec, *gpt_, type);
}

Weights Shape::weights(const std::string& type, bool is_gpu) const {
    Weights weights;
    weights.type = type;
    std::map<WeightKind, double> kinds, expert_kinds;
    for (const Matrix& matrix : matrices_) {
        const Dtype dtype = dtype_of(matrix, type);
        const double bytes = bytes_of(dtype, matrix.rows, matrix.columns);
        const int group = static_cast<int>(matrix.group);
        weights.bytes[group] += bytes;
        weights.parameters[group] += static_cast<double>(matrix.rows) *
                                     static_cast<double>(std::max(matrix.columns, int64_t{1}));
        if (matrix.group == Group::layers) kinds[kind_of(dtype)] += bytes;
        if (matrix.group == Group::experts) expert_kinds[kind_of(dtype)] += bytes;
    }
    const auto most = [](const std::map<WeightKind, double>& of, WeightKind otherwise) {
        const auto found = std::max_element(
            of.begin(), of.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
        return found == of.end() ? otherwise : found->first;
    };
    weights.kind = most(kinds, WeightKind::half);
    weights.expert_kind = most(expert_kinds, weights.kind);
    if (type == kFp8) weights.arithmetic = Arithmetic::fp8;
    if (is_gpu) return weights;
    // On the CPU `auto` and `f32` compute in f32, quantised weights in 16-bit integers.
    const bool halves = type == "bf16" || type == kInt8;
    weights.cache_bytes = halves ? 2 : 4;
    weights.arithmetic = type == "bf16"                     ? Arithmetic::half
                         : weights.kind == WeightKind::int8 ? Arithmetic::int8
                         : weights.kind >= WeightKind::q8_0 ? Arithmetic::int16
                                                            : Arithmetic::f32;
    return weights;
}

Shape find_shape(const std::string& model) {
    require(!model.empty(), "--model is required");
    std::error_code failed;
    if (fs::is_regular_file(model, failed) && model.ends_with(".json"))
        return shape_of_config(model);
    const bool is_path = is_model_path(model);
    const bool is_installed = !is_path && (!find_installed_model(model, "whisper").empty() ||
                                           !find_installed_model(model, "gpt").empty());
    if (!is_path && !is_installed)
        if (const std::optional<Shape> shape = published_shape(model)) return *shape;
    return shape_of_files(models::find_any_model(model), model);
}

}  // namespace hark::advice
