// Source: transformers integrations/mxfp4.py, models/gpt_oss/modeling_gpt_oss.py.
#include "hub/gpt_oss_folder.h"

#include <algorithm>

#include "core/error.h"
#include "core/profile/profile.h"
#include "formats/safetensors.h"
#include "gpt/families/tensor_spec.h"
#include "hub/tensor_list.h"

namespace hark::models {
namespace {

using gpt::Part;
using gpt::TensorSpec;

constexpr int64_t kValues = 32;                // of a block
constexpr int64_t kHalf = kValues / 2;         // bytes of a block in the folder, without its scale
constexpr const char* kExperts = ".experts.";  // in a tensor's name, before the expert's number

// A tensor that stacks those of all experts of a layer. Gate and up are rows in turn.
struct Stack {
    std::string name;  // "layers.3.mlp.experts.gate_up_proj", with "_bias" of biases
    std::vector<std::vector<TensorSpec>> experts;  // of each: gate and up, or down

    int64_t rows() const {  // of an expert
        return std::ssize(experts.front()) * experts.front().front().rows;
    }
    int64_t columns() const { return experts.front().front().columns; }  // 0: biases
};

bool is_down(const TensorSpec& spec) {
    return spec.part == Part::expert_down || spec.part == Part::expert_down_bias;
}

std::vector<Stack> stacks_of(const gpt::DecoderConfig& config) {
    std::vector<Stack> stacks;
    for (const TensorSpec& spec : gpt::tensor_specs(config)) {
        if (spec.expert < 0) continue;
        const std::string name =
            concat(spec.name.substr(0, spec.name.find(kExperts)), kExperts,
                   is_down(spec) ? "down_proj" : "gate_up_proj", spec.columns == 0 ? "_bias" : "");
        auto stack = std::find_if(stacks.begin(), stacks.end(),
                                  [&](const Stack& other) { return other.name == name; });
        if (stack == stacks.end()) {
            stacks.push_back({name, {}});
            stack = stacks.end() - 1;
        }
        stack->experts.resize(static_cast<size_t>(spec.expert + 1));
        stack->experts.back().push_back(spec);
    }
    return stacks;
}

// Byte j of a block in memory has values j and j + 16, in the folder 2 j and 2 j + 1, the lower
// one in the lower bits. The first byte in memory is the scale.
void unpack_block(std::byte* to, const std::byte* from) {
    const auto value = [&](int64_t i) {
        return (from[1 + i % kHalf] >> (i / kHalf * 4)) & std::byte{15};
    };
    for (int64_t j = 0; j < kHalf; ++j) to[j] = value(2 * j) | value(2 * j + 1) << 4;
}

// Calls use() for each block of an expert, in the order of the folder.
template <class Use>
void for_each_block(TensorSource& source, const std::vector<TensorSpec>& parts, const Use& use) {
    std::vector<const std::byte*> at;
    for (const TensorSpec& part : parts)
        at.push_back(static_cast<const std::byte*>(gpt::take(source, part).data));
    const int64_t per_row = parts.front().columns / kValues;
    for (int64_t row = 0; row < parts.front().rows; ++row)
        for (const std::byte*& block : at)
            for (int64_t i = 0; i < per_row; ++i, block += 1 + kHalf) use(block);
    source.release_tensors();
}

void write_blocks(ByteWriter& out, TensorSource& source, const Stack& stack) {
    const ProfileSpan span("convert");
    for (const auto& parts : stack.experts)
        for_each_block(source, parts, [&](const std::byte* block) {
            std::byte values[kHalf];
            unpack_block(values, block);
            out.write(values, sizeof values);
        });
}

void write_scales(ByteWriter& out, TensorSource& source, const Stack& stack) {
    const ProfileSpan span("convert");
    for (const auto& parts : stack.experts)
        for_each_block(source, parts, [&](const std::byte* block) { out.write(block, 1); });
}

// Matrices are (in, out) in the folder: their rows are columns there.
void write_numbers(ByteWriter& out, TensorSource& source, const Stack& stack, Dtype dtype) {
    const int64_t columns = std::max<int64_t>(stack.columns(), 1), all = stack.rows();
    for (const auto& parts : stack.experts) {
        std::vector<float> turned(static_cast<size_t>(all * columns));
        const int64_t step = std::ssize(parts);
        for (int64_t p = 0; p < step; ++p) {
            const TensorSpec& spec = parts[static_cast<size_t>(p)];
            std::vector<int64_t> shape = {spec.rows};
            if (spec.columns > 0) shape.push_back(spec.columns);
            const std::vector<float> values =
                values_of(source, {spec.name, shape, spec.is_matrix()});
            for (int64_t row = 0; row < spec.rows; ++row)
                for (int64_t c = 0; c < columns; ++c)
                    turned[static_cast<size_t>(c * all + row * step + p)] =
                        values[static_cast<size_t>(row * columns + c)];
        }
        const ProfileSpan span("convert");
        write_values(out, turned, dtype, concat(source.where(), ": ", parts.front().name));
    }
}

}  // namespace

bool has_mxfp4_experts(gpt::ModelFile& model) {
    if (model.config().family != kGptOss) return false;
    for (const Stack& stack : stacks_of(model.config())) {
        if (stack.columns() == 0) continue;
        for (const TensorSpec& part : stack.experts.front()) {
            const Dtype stored = gpt::take(model.tensors(), part).dtype;
            model.tensors().release_tensors();
            if (stored != Dtype::mxfp4) return false;
        }
    }
    return true;
}

nlohmann::ordered_json gpt_oss_quantization() {
    return {{"quant_method", "mxfp4"},
            {"modules_to_not_convert",
             {"model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens",
              "lm_head"}}};
}

std::vector<FolderTensor> gpt_oss_experts(gpt::ModelFile& model, Dtype dtype) {
    TensorSource* source = &model.tensors();
    const bool has_blocks = has_mxfp4_experts(model);
    std::vector<FolderTensor> tensors;
    for (const Stack& stack : stacks_of(model.config())) {
        const int64_t count = std::ssize(stack.experts), rows = stack.rows();
        if (has_blocks && stack.columns() > 0) {
            const int64_t per_row = stack.columns() / kValues;
            tensors.push_back({stack.name + "_blocks",
                               Dtype::u8,
                               {count, rows, per_row, kHalf},
                               [=](ByteWriter& out) { write_blocks(out, *source, stack); }});
            tensors.push_back(
                {stack.name + "_scales", Dtype::u8, {count, rows, per_row}, [=](ByteWriter& out) {
                     write_scales(out, *source, stack);
                 }});
            continue;
        }
        std::vector<int64_t> shape = {count, rows};
        if (stack.columns() > 0) shape.insert(shape.begin() + 1, stack.columns());
        tensors.push_back({stack.name, dtype, shape,
                           [=](ByteWriter& out) { write_numbers(out, *source, stack, dtype); }});
    }
    return tensors;
}

}  // namespace hark::models
