#include "gpt/families/llmc_file.h"

#include <algorithm>
#include <cstring>

#include "core/error.h"
#include "core/files.h"
#include "core/io.h"

namespace hark::gpt {
namespace {

constexpr size_t kHeaderBytes = 1024;
constexpr int32_t kVersionF32 = 3, kVersionBf16 = 5;
constexpr int64_t kVocabMultiple = 128;  // llm.c's own padding

// One of the 16 tensors; its sizes are those of one layer.
struct Part {
    std::string name;  // in a Hugging Face file; after "h.N." if it is a block's
    bool of_block;
    int64_t rows, columns;  // columns 0: a vector
    int64_t size() const { return rows * std::max<int64_t>(columns, 1); }
};

// In the file's order.
std::vector<Part> parts_of(const LlmcHeader& header) {
    const Config& config = header.config;
    const int64_t c = config.n_embd, inner = config.n_inner;
    std::vector<Part> parts = {{"wte.weight", false, header.padded_vocab, c},
                               {"wpe.weight", false, config.n_positions, c}};
    const auto vector = [&](const std::string& name, int64_t n, bool of_block = true) {
        parts.push_back({name, of_block, n, 0});
    };
    const auto layer_norm = [&](const std::string& name, bool of_block = true) {
        vector(name + ".weight", c, of_block);
        vector(name + ".bias", c, of_block);
    };
    const auto conv1d = [&](const std::string& name, int64_t out, int64_t in) {
        parts.push_back({name + ".weight", true, out, in});
        vector(name + ".bias", out);
    };
    layer_norm("ln_1");
    conv1d("attn.c_attn", 3 * c, c);
    conv1d("attn.c_proj", c, c);
    layer_norm("ln_2");
    conv1d("mlp.c_fc", inner, c);
    conv1d("mlp.c_proj", c, inner);
    layer_norm("ln_f", false);
    return parts;
}

// Calls take(part, name) for each layer of each tensor, in the file's order.
template <class F>
void for_each_part(const LlmcHeader& header, const F& take) {
    for (const Part& part : parts_of(header)) {
        if (!part.of_block) take(part, part.name);
        for (int64_t i = 0; part.of_block && i < header.config.n_layer; ++i)
            take(part, concat("h.", i, ".", part.name));
    }
}

}  // namespace

int64_t LlmcHeader::file_bytes() const {
    int64_t elements = 0;
    for (const Part& part : parts_of(*this))
        elements += part.size() * (part.of_block ? config.n_layer : 1);
    return static_cast<int64_t>(kHeaderBytes) + elements * static_cast<int64_t>(size_of(dtype));
}

std::string LlmcHeader::text() const {
    const auto i32 = [](int64_t value) { return static_cast<int32_t>(value); };
    const int32_t fields[8] = {kLlmcMagic,
                               dtype == Dtype::f32 ? kVersionF32 : kVersionBf16,
                               i32(config.n_positions),
                               i32(config.n_vocab),
                               i32(config.n_layer),
                               i32(config.n_head),
                               i32(config.n_embd),
                               i32(padded_vocab)};
    std::string bytes(kHeaderBytes, '\0');
    std::memcpy(bytes.data(), fields, sizeof fields);
    return bytes;
}

LlmcHeader LlmcHeader::parse(std::string_view bytes, const std::string& name) {
    require(bytes.size() >= kHeaderBytes, name, ": expected an llm.c model with a header of ",
            kHeaderBytes, " bytes, found ", bytes.size(), " bytes in all");
    int32_t fields[8];
    std::memcpy(fields, bytes.data(), sizeof fields);
    require(fields[0] == kLlmcMagic, name, ": expected an llm.c model, which begins with ",
            kLlmcMagic, ", found ", fields[0]);
    require(fields[1] == kVersionF32 || fields[1] == kVersionBf16, name, ": expected version ",
            kVersionF32, " (float32) or ", kVersionBf16, " (bfloat16) of llm.c's model format, ",
            "found ", fields[1]);
    const auto size = [&](size_t i, const char* what, int64_t min, int64_t max) {
        require(fields[i] >= min && fields[i] <= max, name, ": its header's ", what,
                ": expected a number from ", min, " to ", max, ", found ", fields[i]);
        return int64_t{fields[i]};
    };
    LlmcHeader header;
    Config& c = header.config;
    header.dtype = fields[1] == kVersionF32 ? Dtype::f32 : Dtype::bf16;
    c.n_positions = size(2, "positions", 1, 1 << 20);
    c.n_vocab = size(3, "vocabulary", 1, 1 << 24);
    c.n_layer = size(4, "layers", 1, 1024);
    c.n_head = size(5, "heads", 1, 1024);
    c.n_embd = size(6, "channels", 1, 1 << 16);
    header.padded_vocab = size(7, "padded vocabulary", c.n_vocab, 1 << 25);
    require(c.n_embd % c.n_head == 0, name, ": expected heads that divide the channels, found ",
            c.n_head, " and ", c.n_embd);
    c.n_inner = 4 * c.n_embd;
    return header;
}

LlmcFile::LlmcFile(const std::filesystem::path& path) : file_(path) {
    const std::string_view bytes = file_.text();
    header_ = LlmcHeader::parse(bytes, file_.name());
    require(static_cast<uint64_t>(header_.file_bytes()) == file_.size(), file_.name(),
            ": its header describes a model of ", header_.file_bytes(), " bytes, found ",
            file_.size());
    size_t at = kHeaderBytes;
    for_each_part(header_, [&](const Part& part, const std::string& name) {
        const int64_t rows = name == "wte.weight" ? config().n_vocab : part.rows;
        places_[name] = {at, rows, part.columns};
        at += static_cast<size_t>(part.size()) * size_of(header_.dtype);
    });
}

Bpe LlmcFile::tokenizer() const {
    fail(file_.name(),
         ": llm.c's models carry no tokenizer; give one with --tokenizer PATH, as of ",
         "GPT-2's a tiktoken rank file, llm.c's tokenizer.bin or a Hugging Face directory");
}

bool LlmcFile::has(const std::string& name) const { return places_.contains(name); }

Tensor LlmcFile::take(const std::string& name, std::initializer_list<int64_t> shape) {
    const auto found = places_.find(name);
    require(found != places_.end(), file_.name(), ": llm.c's format has no tensor '", name, "'");
    const auto [offset, rows, columns] = found->second;
    std::byte* from = const_cast<std::byte*>(file_.data()) + offset;
    Tensor tensor(from, header_.dtype, {rows});
    if (columns > 0) tensor = Tensor(from, header_.dtype, {rows, columns});
    const Tensor expected(nullptr, header_.dtype, shape);
    require(tensor.rank == expected.rank && tensor.shape == expected.shape, file_.name(),
            ": tensor '", name, "': expected ", expected, ", found ", tensor);
    taken_.emplace_back(offset, tensor.bytes());
    return tensor;
}

void LlmcFile::forget_taken() {
    for (const auto& [offset, bytes] : taken_) file_.forget(offset, bytes);
    taken_.clear();
}

void check_llmc(const Config& config, const std::string& name) {
    require(config.tie_word_embeddings && config.n_inner == 4 * config.n_embd &&
                config.activation == Activation::gelu_tanh && config.layer_norm_epsilon == 1e-5f,
            name, ": llm.c's model format holds models of GPT-2's own kind alone: output weights ",
            "that are the token table's, 4 C channels in an MLP, tanh's GELU, epsilon 1e-5");
}

void write_llmc(const std::filesystem::path& file, const Config& config,
                const ParameterLayout& layout, const Tensor& parameters, Dtype dtype) {
    check_llmc(config, file.string());
    LlmcHeader header = {config, 0, dtype};
    header.padded_vocab = (config.n_vocab + kVocabMultiple - 1) / kVocabMultiple * kVocabMultiple;
    std::map<std::string, const ParameterLayout::Entry*> entries;
    for (const ParameterLayout::Entry& entry : layout.entries()) entries[entry.name] = &entry;
    AtomicFile out(file);
    ByteWriter writer(out.fd(), out.name());
    writer.write(header.text());
    for_each_part(header, [&](const Part& part, const std::string& name) {
        const ParameterLayout::Entry& entry = *entries.at(name);
        const float* from = parameters.as<float>() + entry.offset;
        const int64_t stored = entry.stored_size();
        write_values(writer, {from, static_cast<size_t>(stored)}, dtype, out.name());
        // The padding of the vocabulary.
        writer.write(std::string(static_cast<size_t>(part.size() - stored) * size_of(dtype), '\0'));
    });
    writer.flush();
    out.commit();
}

}  // namespace hark::gpt
