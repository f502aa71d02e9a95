#include "gpt/families/llmc_file.h"

#include <algorithm>
#include <cstring>

#include "core/error.h"
#include "core/files/files.h"
#include "core/files/io.h"
#include "gpt/families/tensor_spec.h"

namespace hark::gpt {
namespace {

constexpr size_t kHeaderBytes = 1024;
constexpr int32_t kVersionF32 = 3, kVersionBf16 = 5;
constexpr int64_t kLlmcVocabMultiple = 128;  // llm.c's own padding

// One of the 16 tensors; its sizes are those of one layer.
struct LlmcPart {
    std::string name;  // in a Hugging Face file; after "h.N." if it is a block's
    bool of_block;
    int64_t rows, columns;  // columns 0: a vector
    int64_t size() const { return rows * std::max<int64_t>(columns, 1); }
};

// In the file's order: the tables, then each of a layer's tensors for all layers, then the last
// norm.
std::vector<LlmcPart> parts_of(const LlmcHeader& header) {
    std::vector<LlmcPart> parts;
    const std::string first = "h.0.";
    for (const TensorSpec& spec : tensor_specs(header.config)) {
        if (spec.layer > 0) continue;
        const bool of_block = spec.layer == 0;
        const int64_t rows = spec.part == Part::token_table ? header.padded_vocab : spec.rows;
        parts.push_back(
            {of_block ? spec.name.substr(first.size()) : spec.name, of_block, rows, spec.columns});
    }
    return parts;
}

// Calls take(part, name) for each layer of each tensor, in the file's order.
template <class F>
void for_each_part(const LlmcHeader& header, const F& take) {
    for (const LlmcPart& part : parts_of(header)) {
        if (!part.of_block) take(part, part.name);
        for (int64_t i = 0; part.of_block && i < header.config.n_layer; ++i)
            take(part, concat("h.", i, ".", part.name));
    }
}

}  // namespace

int64_t LlmcHeader::file_bytes() const {
    int64_t elements = 0;
    for (const LlmcPart& part : parts_of(*this))
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
    DecoderConfig& c = header.config;
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
    complete_gpt2(c);
    return header;
}

LlmcFile::LlmcFile(const std::filesystem::path& path) : file_(path) {
    const std::string_view bytes = file_.text();
    header_ = LlmcHeader::parse(bytes, file_.name());
    require(static_cast<uint64_t>(header_.file_bytes()) == file_.size(), file_.name(),
            ": its header describes a model of ", header_.file_bytes(), " bytes, found ",
            file_.size());
    size_t at = kHeaderBytes;
    for_each_part(header_, [&](const LlmcPart& part, const std::string& name) {
        const int64_t rows = name == "wte.weight" ? config().n_vocab : part.rows;
        places_[name] = {at, rows, part.columns};
        at += static_cast<size_t>(part.size()) * size_of(header_.dtype);
    });
}

std::shared_ptr<const Tokenizer> LlmcFile::tokenizer() const {
    fail(file_.name(),
         ": llm.c's models carry no tokenizer; give one with --tokenizer PATH, as of ",
         "GPT-2's a tiktoken rank file, llm.c's tokenizer.bin or a Hugging Face directory");
}

Bpe LlmcFile::bpe() const {
    tokenizer();
    fail("internal error: a tokenizer of llm.c's format");
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

void LlmcFile::release_tensors() {
    for (const auto& [offset, bytes] : taken_) file_.forget(offset, bytes);
    taken_.clear();
}

void check_llmc(const DecoderConfig& config, const std::string& name) {
    require(config.tie_word_embeddings && config.n_inner == 4 * config.n_embd &&
                config.activation == Activation::gelu_tanh && config.norm_eps == 1e-5f,
            name, ": llm.c's model format holds models of GPT-2's own kind alone: output weights ",
            "that are the token table's, 4 C channels in an MLP, tanh's GELU, epsilon 1e-5");
}

void write_llmc(const std::filesystem::path& file, const DecoderConfig& config,
                const TensorValues& values, Dtype dtype) {
    check_llmc(config, file.string());
    LlmcHeader header = {config, 0, dtype};
    header.padded_vocab =
        (config.n_vocab + kLlmcVocabMultiple - 1) / kLlmcVocabMultiple * kLlmcVocabMultiple;
    AtomicFile out(file);
    ByteWriter writer(out.fd(), out.name());
    writer.write(header.text());
    for_each_part(header, [&](const LlmcPart& part, const std::string& name) {
        const int64_t stored =
            part.size() / part.rows * (name == "wte.weight" ? config.n_vocab : part.rows);
        write_values(writer, {values(name), static_cast<size_t>(stored)}, dtype, out.name());
        // The padding of the vocabulary.
        writer.write(std::string(static_cast<size_t>(part.size() - stored) * size_of(dtype), '\0'));
    });
    writer.flush();
    out.commit();
}

}  // namespace hark::gpt
