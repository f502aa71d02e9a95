#include "whisper/model/ggml_file.h"

#include <algorithm>
#include <cstring>

#include "core/error.h"
#include "formats/ggml.h"
#include "text/bpe_builder.h"
#include "whisper/model/openai_names.h"

namespace hark::whisper {
namespace {

constexpr int32_t kFftBins = 201;
constexpr uint32_t kMaxToken = 512, kMaxName = 256;  // bytes
// ftype = type of most tensors + 1000 * version of the block layout.
constexpr int32_t kVersionFactor = 1000, kBlockVersion = 2;

}  // namespace

Tokenizer ggml_tokenizer(const std::vector<std::string>& tokens, int64_t n_vocab,
                         const std::string& where) {
    std::unordered_map<std::string, int32_t> ranks;
    for (size_t i = 0; i < tokens.size(); ++i)
        ranks.try_emplace(tokens[i], static_cast<int32_t>(i));
    require(ranks.size() == tokens.size(), where, ": expected a vocabulary of ", tokens.size(),
            " different tokens, found ", ranks.size(),
            "; some converters write U+FFFD for bytes that are no characters. Give --tokenizer ",
            "with the model's own, multilingual.tiktoken or gpt2.tiktoken");
    return official_tokenizer(BpeBuilder::ranked(ranks, where), n_vocab, where);
}

GgmlFile::GgmlFile(const std::filesystem::path& path) : file_(path) {
    ByteCursor in(file_.text(), file_.name());
    read_header(in);
    read_tokens(in);
    while (in.left() > 0) read_tensor(in);
}

void GgmlFile::read_header(ByteCursor& in) {
    in.what = "the magic number";
    require(in.take(kMagic.size()) == kMagic, file_.name(),
            ": expected a ggml file, which begins with ", kMagic);
    std::map<std::string, int64_t> sizes;
    for (const char* name :
         {"n_vocab", "n_audio_ctx", "n_audio_state", "n_audio_head", "n_audio_layer", "n_text_ctx",
          "n_text_state", "n_text_head", "n_text_layer", "n_mels"}) {
        in.what = name;
        sizes[name] = in.number<int32_t>();
    }
    config_ = config_of_sizes(sizes, file_.name());
    in.what = "ftype";
    block_version_ = in.number<int32_t>() / kVersionFactor;
    in.what = "the mel filters";
    const auto mels = in.number<int32_t>(), bins = in.number<int32_t>();
    require(mels == config_.n_mels && bins == kFftBins, file_.name(), ": expected mel filters (",
            config_.n_mels, ", ", kFftBins, "), found (", mels, ", ", bins, ")");
    // Skipped: the mel tool computes the same filters.
    in.take(static_cast<size_t>(mels) * kFftBins * sizeof(float));
}

void GgmlFile::read_tokens(ByteCursor& in) {
    in.what = "the number of tokens";
    const auto count = in.number<int32_t>(1, static_cast<int32_t>(config_.n_vocab));
    bool ranks = true;
    for (int32_t i = 0; i < count; ++i) {
        in.what = concat("token ", i);
        const std::string_view token = in.take(in.number<uint32_t>(0, kMaxToken));
        // Special tokens follow the ranks.
        ranks = ranks && token != "<|endoftext|>";
        if (ranks) tokens_.emplace_back(token);
    }
}

void GgmlFile::read_tensor(ByteCursor& in) {
    const std::string at = concat("the tensor at byte ", in.at());
    in.what = at + ": dimensions";
    const auto rank = in.number<int32_t>(1, Tensor::kMaxRank);
    in.what = at + ": the name's length";
    const auto name_length = in.number<uint32_t>(1, kMaxName);
    in.what = at + ": type";
    const auto type = in.number<uint32_t>();
    in.what = at + ": length";
    int32_t lengths[Tensor::kMaxRank];
    for (int i = 0; i < rank; ++i) lengths[i] = in.number<int32_t>(1, INT32_MAX);
    in.what = at + ": name";
    const std::string name(in.take(name_length));
    in.what = concat("tensor '", name, "'");
    const std::string where = in.place();
    Place place = {in.at(), {}};
    place.view.dtype = ggml_dtype(type, where);
    place.view.rank = rank;
    for (int i = 0; i < rank; ++i) place.view.shape[i] = lengths[rank - 1 - i];
    const BlockSize block = block_size(place.view.dtype);
    require(lengths[0] % block.values == 0, where, ": expected rows of whole blocks of ",
            block.values, " values, found ", place.view);
    require(!is_quantized(place.view.dtype) || block_version_ == kBlockVersion, where,
            ": expected quantised blocks of version ", kBlockVersion, ", found version ",
            block_version_, ": quantise the model again");
    // Counting blocks, of at least 2 bytes each, cannot overflow.
    int64_t blocks = lengths[0] / block.values;
    for (int i = 1; i < rank; ++i) {
        require(lengths[i] <= static_cast<int64_t>(in.left()) / blocks, where,
                ": expected values in the file, found ", place.view, " and ", in.left(),
                " bytes to its end");
        blocks *= lengths[i];
    }
    require(blocks <= static_cast<int64_t>(in.left()) / block.bytes, where,
            ": expected values in the file, found ", place.view, " and ", in.left(),
            " bytes to its end (truncated?)");
    const std::string_view data = in.take(static_cast<uint64_t>(blocks * block.bytes));
    place.view.data = const_cast<char*>(data.data());
    require(places_.try_emplace(name, place).second, where, ": is there twice");
}

Tokenizer GgmlFile::tokenizer() const {
    return ggml_tokenizer(tokens_, config_.n_vocab, file_.name());
}

bool GgmlFile::has(const std::string& name) const { return places_.contains(openai_name(name)); }

Tensor GgmlFile::take(const std::string& name, std::initializer_list<int64_t> shape) {
    const std::string own = openai_name(name);
    const auto found = places_.find(own);
    require(found != places_.end(), file_.name(), ": expected a tensor '", own,
            "', found none among ", places_.size());
    Tensor tensor = found->second.view;
    const Tensor expected(nullptr, tensor.dtype, shape);
    // Convolution biases are stored as (n, 1).
    if (tensor.rank == expected.rank + 1 && tensor.dim(-1) == 1) tensor.shape[--tensor.rank] = 0;
    require(tensor.rank == expected.rank && tensor.shape == expected.shape, file_.name(),
            ": tensor '", own, "': expected ", expected, ", found ", tensor);
    taken_.push_back(found->second);
    buffers_.push_back(std::make_unique_for_overwrite<std::byte[]>(tensor.bytes()));
    std::memcpy(buffers_.back().get(), tensor.data, tensor.bytes());
    tensor.data = buffers_.back().get();
    return tensor;
}

void GgmlFile::release_tensors() {
    for (const Place& place : taken_) file_.forget(place.offset, place.view.bytes());
    taken_.clear();
    buffers_.clear();
}

}  // namespace hark::whisper
