// CTranslate2's model.bin: its variables, and tensors taken out of them.
#include "core/error.h"
#include "fuzz/memory_file.h"
#include "fuzz/target.h"
#include "support/torch_writer.h"
#include "whisper/model/ctranslate2_tensors.h"

using namespace hark;
using namespace hark::fuzz;
using test::little;

namespace {

std::string named(const std::string& name) { return little(name.size() + 1, 2) + name + '\0'; }

std::string variable(const std::string& name, const std::vector<uint64_t>& shape, uint64_t dtype,
                     const std::string& data) {
    std::string text = named(name) + little(shape.size(), 1);
    for (const uint64_t dim : shape) text += little(dim, 4);
    return text + little(dtype, 1) + little(data.size(), 4) + data;
}

}  // namespace

static std::vector<std::string> ctranslate2_seeds() {
    const std::string scale = little(0x3f800000, 4);
    const std::string int16 =
        little(6, 4) + named("WhisperSpec") + little(3, 4) + little(5, 4) +
        variable("encoder/num_heads", {}, 2, little(4, 2)) +
        variable("encoder/conv1/weight", {1, 2, 3}, 2, std::string(12, '\x3c')) +
        variable("encoder/conv1/weight_scale", {}, 0, scale) +
        variable("encoder/layer_0/self_attention/linear_0/weight", {3, 2}, 2, "abcdefghijkl") +
        variable("encoder/layer_0/self_attention/linear_0/weight_scale", {}, 0, scale) +
        little(0, 4);
    return {int16,
            little(6, 4) + named("WhisperSpec") + little(3, 4) + little(5, 4) +
                variable("encoder/num_heads", {}, 2, little(4, 2)) +
                variable("encoder/conv1/weight", {1, 2, 3}, 4, std::string(12, '\x3c')) +
                variable("encoder/layer_0/self_attention/linear_0/weight", {3, 2}, 1, "abcdef") +
                variable("encoder/layer_0/self_attention/linear_0/weight_scale", {3}, 0,
                         scale + scale + scale) +
                variable("decoder/embeddings/weight", {2, 2}, 0, std::string(16, '\x3c')) +
                little(1, 4) + named("decoder/projection/weight") +
                named("decoder/embeddings/weight")};
}

static int ctranslate2_input(const uint8_t* data, size_t size) {
    const fuzz::MemoryFile input(data, size);
    double sum = 0;
    try {
        const Ctranslate2Variables file(input.path(), "WhisperSpec", 3);
        whisper::Ctranslate2Tensors tensors(file);
        sum += static_cast<double>(file.number("encoder/num_heads"));
        for (const auto& [name, shape] :
             {std::pair("encoder.conv1.weight", 3), {"decoder.embed_tokens.weight", 2}}) {
            const std::string variable =
                shape == 3 ? "encoder/conv1/weight" : "decoder/embeddings/weight";
            const int64_t rows = file.dim(variable, 0), columns = file.dim(variable, 1);
            const Tensor tensor = shape == 3 ? tensors.take(name, {rows, columns, 3})
                                             : tensors.take(name, {rows, columns});
            const auto* bytes = static_cast<const uint8_t*>(tensor.data);
            for (size_t i = 0; i < tensor.bytes(); ++i) sum += bytes[i];
        }
        for (const char* part : {"q", "k", "v"}) {
            const Tensor tensor = tensors.take(
                std::string("encoder.layers.0.self_attn.") + part + "_proj.weight", {1, 2});
            sum += tensor.dtype == Dtype::f32 ? tensor.as<float>()[1] : 0;
        }
        tensors.release_tensors();
    } catch (const Error&) {
    }
    // Used, so that the reads stay.
    return sum == 1e300 ? -1 : 0;
}

static const hark::fuzz::Target kCtranslate2{"ctranslate2", ctranslate2_seeds, ctranslate2_input};
