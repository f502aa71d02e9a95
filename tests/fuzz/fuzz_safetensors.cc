// Model files: the header, the offsets, and every tensor that they promise.
#include "core/error.h"
#include "formats/safetensors.h"
#include "fuzz/memory_file.h"
#include "fuzz/target.h"

using namespace hark;
using namespace hark::fuzz;

static std::vector<std::string> safetensors_seeds() {
    SafetensorsHeader header;
    header.metadata = {{"format", "pt"}};
    header.tensors = {{"model.a.weight", "F16", {2, 3}, 0, 12}, {"model.b", "F32", {1}, 12, 16}};
    SafetensorsHeader many;
    for (uint64_t i = 0; i < 20; ++i)
        many.tensors.push_back({"t" + std::to_string(i), "I8", {1, 1, 1, 1}, i, i + 1});
    SafetensorsHeader other;
    other.tensors = {{"mask", "BOOL", {1}, 0, 1}};
    return {format_safetensors_header(header) + std::string(16, '\x3c'),
            format_safetensors_header(many) + std::string(20, '\x01'),
            format_safetensors_header(other) + "\x01", format_safetensors_header({})};
}

static int safetensors_input(const uint8_t* data, size_t size) {
    const hark::fuzz::MemoryFile input(data, size);
    try {
        const hark::SafetensorsFile file(input.path());
        unsigned sum = 0;
        for (const hark::TensorEntry& entry : file.entries()) {
            const hark::Tensor tensor = file.tensor(entry);
            const uint8_t* bytes = static_cast<const uint8_t*>(tensor.data);
            for (size_t i = 0; i < tensor.bytes(); ++i) sum += bytes[i];
            file.forget(entry);
        }
        // Used, so that the reads stay.
        if (sum == 1) return hark::describe(file.tensor(file.entries().front())).empty();
    } catch (const hark::Error&) {
    }
    return 0;
}

static const hark::fuzz::Target kSafetensors{"safetensors", safetensors_seeds, safetensors_input};
