// whisper.cpp's model files: header, vocabulary, and every tensor of the smallest model.
#include "core/error.h"
#include "formats/ggml.h"
#include "fuzz/memory_file.h"
#include "fuzz/target.h"
#include "support/ggml_writer.h"
#include "whisper/model/ggml_file.h"

using namespace hark;
using namespace hark::fuzz;
using test::GgmlParts;

static std::vector<std::string> ggml_file_seeds() {
    GgmlParts parts;
    parts.sizes[10] = 2007;
    parts.mels = parts.sizes[9] = 1;
    for (int byte = 0; byte < 256; ++byte) parts.tokens.emplace_back(1, static_cast<char>(byte));
    const std::string plain = parts.text();
    parts.tensors = {
        GgmlParts::tensor("decoder.ln.weight", 0, {32}, std::string(128, '\1')),
        GgmlParts::tensor("encoder.conv1.bias", 1, {32, 1}, std::string(64, '\2')),
        GgmlParts::tensor("decoder.token_embedding.weight", 8, {2, 32}, std::string(68, '\3'))};
    return {plain, parts.text()};
}

static int ggml_file_input(const uint8_t* data, size_t size) {
    const fuzz::MemoryFile input(data, size);
    try {
        whisper::GgmlFile file(input.path());
        const int64_t c = file.config().n_text_state;
        TensorSource& source = file.tensors();
        if (source.has("decoder.layer_norm.weight")) source.take("decoder.layer_norm.weight", {c});
        if (source.has("encoder.conv1.bias"))
            ggml_type(source.take("encoder.conv1.bias", {c}).dtype);
        if (source.has("decoder.embed_tokens.weight"))
            source.take("decoder.embed_tokens.weight", {2, c});
        source.release_tensors();
        file.tokenizer().encode("a b");
    } catch (const Error&) {
    }
    return 0;
}

static const hark::fuzz::Target kGgmlFile{"ggml_file", ggml_file_seeds, ggml_file_input};
