// Silero VAD's weight files, and a step of what they hold.
#include "core/error.h"
#include "formats/safetensors.h"
#include "fuzz/memory_file.h"
#include "fuzz/target.h"
#include "speech/silero.h"

using namespace hark;
using namespace hark::fuzz;

namespace {

std::string number(uint32_t value) {
    std::string bytes;
    for (int i = 0; i < 4; ++i, value >>= 8) bytes += static_cast<char>(value);
    return bytes;
}

std::string ggml_header() {
    std::string file = number(0x67676d6c) + number(10) + "silero-16k";
    for (uint32_t n :
         {6, 2, 0, 512, 64, 4, 129, 128, 3, 128, 64, 3, 64, 64, 3, 64, 128, 3, 128, 128, 128, 1})
        file += number(n);
    return file;
}

std::string tensor(const std::string& name, std::initializer_list<uint32_t> shape, uint32_t type) {
    std::string bytes = number(static_cast<uint32_t>(shape.size())) +
                        number(static_cast<uint32_t>(name.size())) + number(type);
    uint32_t count = type == 0 ? 4 : 2;
    for (uint32_t n : shape) bytes += number(n), count *= n;
    return bytes + name + std::string(count, '\x2c');
}

// All tensors, in f16.
std::string whole_model() {
    const std::vector<std::pair<std::string, std::vector<int64_t>>> shapes = {
        {"stft_conv.weight", {258, 1, 256}},
        {"conv1.weight", {128, 129, 3}},
        {"conv1.bias", {128}},
        {"conv2.weight", {64, 128, 3}},
        {"conv2.bias", {64}},
        {"conv3.weight", {64, 64, 3}},
        {"conv3.bias", {64}},
        {"conv4.weight", {128, 64, 3}},
        {"conv4.bias", {128}},
        {"lstm_cell.weight_ih", {512, 128}},
        {"lstm_cell.weight_hh", {512, 128}},
        {"lstm_cell.bias_ih", {512}},
        {"lstm_cell.bias_hh", {512}},
        {"final_conv.weight", {1, 128, 1}},
        {"final_conv.bias", {1}}};
    hark::SafetensorsHeader header;
    uint64_t at = 0;
    for (const auto& [name, shape] : shapes) {
        uint64_t bytes = 2;
        for (const int64_t n : shape) bytes *= static_cast<uint64_t>(n);
        header.tensors.push_back({name, "F16", shape, at, at + bytes});
        at += bytes;
    }
    return format_safetensors_header(header) + std::string(at, '\x1c');
}

}  // namespace

static std::vector<std::string> silero_seeds() {
    SafetensorsHeader header;
    header.tensors = {{"conv1.bias", "F32", {128}, 0, 512}, {"conv2.bias", "F16", {64}, 512, 640}};
    return {ggml_header() + tensor("_model.encoder.0.reparam_conv.bias", {128}, 0) +
                tensor("_model.decoder.decoder.2.bias", {}, 0) +
                tensor("_model.decoder.decoder.2.weight", {128}, 1),
            ggml_header() + tensor("_model.encoder.2.reparam_conv.weight", {3, 64, 64}, 1),
            format_safetensors_header(header) + std::string(640, '\x3c'), whole_model()};
}

static int silero_input(const uint8_t* data, size_t size) {
    const hark::fuzz::MemoryFile input(data, size);
    try {
        hark::Silero silero(hark::load_silero(input.path()));
        std::vector<float> probabilities;
        silero.push(std::vector<float>(512, 0.5f), probabilities);
    } catch (const hark::Error&) {
    }
    return 0;
}

// 600 KB of f16 become 1.2 MB of f32, and matrices of another order.
static const hark::fuzz::Target kSilero{"silero", silero_seeds, silero_input, int64_t{4} << 20};
