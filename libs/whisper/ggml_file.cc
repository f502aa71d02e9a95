#include "whisper/ggml_file.h"

#include <algorithm>
#include <cstring>

#include "core/error.h"
#include "core/ggml.h"
#include "text/bpe_builder.h"
#include "whisper/openai_names.h"

namespace hark::whisper {
namespace {

constexpr int32_t kFftBins = 201;
constexpr size_t kMaxToken = 512, kMaxName = 256;  // bytes
// Of ftype: the type of most tensors + 1000 * the version of the blocks' layout.
constexpr int32_t kVersionFactor = 1000, kBlockVersion = 2;

}  // namespace

// What is read goes no further than the file.
class GgmlFile::Reader {
  public:
    explicit Reader(const MappedFile& file) : file_(file) {}

    // The next n bytes, which hold `what`.
    const std::byte* take(size_t n, const std::string& what) {
        require(n <= left(), file_.name(), ": ", what, ": expected ", n, " bytes at byte ", at_,
                ", found ", left(), " to the file's end (truncated?)");
        at_ += n;
        return file_.data() + at_ - n;
    }
    int32_t number(const std::string& what) {
        int32_t value;
        std::memcpy(&value, take(sizeof value, what), sizeof value);
        return value;
    }
    // A number from min to max.
    int32_t number(const std::string& what, int32_t min, int64_t max) {
        const int32_t value = number(what);
        require(min <= value && value <= max, file_.name(), ": ", what, ": expected a number from ",
                min, " to ", max, ", found ", value);
        return value;
    }
    std::string text(size_t n, const std::string& what) {
        return {reinterpret_cast<const char*>(take(n, what)), n};
    }
    size_t at() const { return at_; }
    size_t left() const { return file_.size() - at_; }

  private:
    const MappedFile& file_;
    size_t at_ = 0;
};

GgmlFile::GgmlFile(const std::filesystem::path& path) : file_(path) {
    Reader reader(file_);
    read_header(reader);
    read_tokens(reader);
    while (reader.left() > 0) read_tensor(reader);
}

void GgmlFile::read_header(Reader& reader) {
    require(reader.text(kMagic.size(), "the magic number") == kMagic, file_.name(),
            ": expected a ggml file, which begins with ", kMagic);
    std::map<std::string, int64_t> sizes;
    for (const char* name :
         {"n_vocab", "n_audio_ctx", "n_audio_state", "n_audio_head", "n_audio_layer", "n_text_ctx",
          "n_text_state", "n_text_head", "n_text_layer", "n_mels"})
        sizes[name] = reader.number(name);
    config_ = config_of_sizes(sizes, file_.name());
    block_version_ = reader.number("ftype") / kVersionFactor;
    const int32_t mels = reader.number("the mel filters' rows");
    const int32_t bins = reader.number("the mel filters' columns");
    require(mels == config_.n_mels && bins == kFftBins, file_.name(), ": expected mel filters (",
            config_.n_mels, ", ", kFftBins, "), found (", mels, ", ", bins, ")");
    // Not looked at: mel has the same ones by their formula.
    reader.take(static_cast<size_t>(mels) * kFftBins * sizeof(float), "the mel filters");
}

void GgmlFile::read_tokens(Reader& reader) {
    const int32_t count = reader.number("the number of tokens", 1, config_.n_vocab);
    bool ranks = true;
    for (int32_t i = 0; i < count; ++i) {
        const std::string what = concat("token ", i);
        const int32_t length = reader.number(what, 0, kMaxToken);
        std::string token = reader.text(static_cast<size_t>(length), what);
        // What stands behind the ranks are special tokens.
        ranks = ranks && token != "<|endoftext|>";
        if (ranks) tokens_.push_back(std::move(token));
    }
}

void GgmlFile::read_tensor(Reader& reader) {
    const std::string at = concat("the tensor at byte ", reader.at());
    const int32_t rank = reader.number(at + ": dimensions", 1, Tensor::kMaxRank);
    const int32_t name_length = reader.number(at + ": the name's length", 1, kMaxName);
    const int32_t type = reader.number(at + ": type");
    int32_t lengths[Tensor::kMaxRank];
    for (int i = 0; i < rank; ++i) lengths[i] = reader.number(at + ": length", 1, INT32_MAX);
    const std::string name = reader.text(static_cast<size_t>(name_length), at + ": name");
    const std::string where = concat(file_.name(), ": tensor '", name, "'");
    Place place = {reader.at(), {}};
    place.view.dtype = ggml_dtype(static_cast<uint32_t>(type), where);
    place.view.rank = rank;
    for (int i = 0; i < rank; ++i) place.view.shape[i] = lengths[rank - 1 - i];
    const BlockSize block = block_size(place.view.dtype);
    require(lengths[0] % block.values == 0, where, ": expected rows of whole blocks of ",
            block.values, " values, found ", place.view);
    require(!is_quantized(place.view.dtype) || block_version_ == kBlockVersion, where,
            ": expected quantised blocks of version ", kBlockVersion, ", found version ",
            block_version_, ": quantise the model anew");
    // Counted in blocks, which take 2 bytes at least, so that nothing overflows.
    int64_t blocks = lengths[0] / block.values;
    for (int i = 1; i < rank; ++i) {
        require(lengths[i] <= static_cast<int64_t>(reader.left()) / blocks, where,
                ": expected values in the file, found ", place.view, " and ", reader.left(),
                " bytes to its end");
        blocks *= lengths[i];
    }
    require(blocks <= static_cast<int64_t>(reader.left()) / block.bytes, where,
            ": expected values in the file, found ", place.view, " and ", reader.left(),
            " bytes to its end (truncated?)");
    const size_t bytes = static_cast<size_t>(blocks * block.bytes);
    place.view.data = const_cast<std::byte*>(reader.take(bytes, where));
    require(places_.try_emplace(name, place).second, where, ": is there twice");
}

Tokenizer GgmlFile::tokenizer() const {
    std::unordered_map<std::string, int32_t> ranks;
    for (size_t i = 0; i < tokens_.size(); ++i)
        ranks.try_emplace(tokens_[i], static_cast<int32_t>(i));
    require(ranks.size() == tokens_.size(), file_.name(), ": expected a vocabulary of ",
            tokens_.size(), " different tokens, found ", ranks.size(),
            "; some converters write U+FFFD for bytes that are no characters. Give --vocab ",
            "with the model's own, multilingual.tiktoken or gpt2.tiktoken");
    return official_tokenizer(BpeBuilder::ranked(ranks, file_.name()), config_.n_vocab);
}

bool GgmlFile::has(const std::string& name) const { return places_.contains(openai_name(name)); }

Tensor GgmlFile::take(const std::string& name, std::initializer_list<int64_t> shape) {
    const std::string own = openai_name(name);
    const auto found = places_.find(own);
    require(found != places_.end(), file_.name(), ": expected a tensor '", own,
            "', found none among ", places_.size());
    Tensor tensor = found->second.view;
    const Tensor expected(nullptr, tensor.dtype, shape);
    // Biases of convolutions are (n, 1).
    if (tensor.rank == expected.rank + 1 && tensor.dim(-1) == 1) tensor.shape[--tensor.rank] = 0;
    require(tensor.rank == expected.rank && tensor.shape == expected.shape, file_.name(),
            ": tensor '", own, "': expected ", expected, ", found ", tensor);
    taken_.push_back(found->second);
    buffers_.push_back(std::make_unique_for_overwrite<std::byte[]>(tensor.bytes()));
    std::memcpy(buffers_.back().get(), tensor.data, tensor.bytes());
    tensor.data = buffers_.back().get();
    return tensor;
}

void GgmlFile::forget_taken() {
    for (const Place& place : taken_) file_.forget(place.offset, place.view.bytes());
    taken_.clear();
    buffers_.clear();
}

}  // namespace hark::whisper
