// llm.c model files: the header, and every tensor that it promises.
#include "core/error.h"
#include "fuzz/memory_file.h"
#include "fuzz/target.h"
#include "gpt/families/llmc_file.h"
#include "gpt/train/parameters.h"

using namespace hark;
using namespace hark::fuzz;

namespace {

std::string model_file(Dtype dtype) {
    gpt::LlmcHeader header;
    header.dtype = dtype;
    header.config.n_vocab = header.config.n_positions = header.config.n_embd = 2;
    header.config.n_layer = header.config.n_head = 1;
    header.config.n_inner = 8;
    gpt::complete_gpt2(header.config);
    header.padded_vocab = 3;
    return header.text() + std::string(static_cast<size_t>(header.file_bytes()) - 1024, '\x3c');
}

}  // namespace

static std::vector<std::string> llmc_file_seeds() {
    return {model_file(Dtype::f32), model_file(Dtype::bf16)};
}

static int llmc_file_input(const uint8_t* data, size_t size) {
    const fuzz::MemoryFile input(data, size);
    try {
        gpt::LlmcFile file(input.path());
        // What was accepted is in the file, so the vector is no larger than the input.
        const gpt::ParameterLayout layout(file.config());
        std::vector<float> values(static_cast<size_t>(layout.size()));
        if (!file.has("wte.weight")) std::abort();
        layout.read(Tensor(values.data(), Dtype::f32, {layout.size()}), file);
        file.release_tensors();
        file.bpe();  // there is none
    } catch (const Error&) {
    }
    return 0;
}

static const hark::fuzz::Target kLlmcFile{"llmc_file", llmc_file_seeds, llmc_file_input};
