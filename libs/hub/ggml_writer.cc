#include "hub/ggml_writer.h"

#include "audio/log_mel.h"
#include "core/error.h"
#include "core/files/files.h"
#include "core/files/io.h"
#include "core/profile/profile.h"
#include "formats/ggml.h"
#include "formats/safetensors.h"
#include "hub/hugging_face_writer.h"
#include "hub/tensor_list.h"
#include "kernels/quant/quantize.h"
#include "whisper/model/alignment_heads.h"
#include "whisper/model/ggml_file.h"
#include "whisper/model/openai_names.h"

namespace hark::models {
namespace {

using whisper::Config;
using whisper::SpecialTokens;
using whisper::Tokenizer;

struct FileType {
    Dtype dtype;
    uint32_t number;  // ggml_ftype, of the whole file
};
constexpr FileType kTypes[] = {
    {Dtype::f32, 0},
    {Dtype::f16, 1},
#define HARK_QUANTIZED(name, block, values, bytes, type, number, ...) {Dtype::name, number},
#include "core/quantized_types.def"
#undef HARK_QUANTIZED
};
constexpr uint32_t kBlockVersion = 2, kVersionFactor = 1000;  // of the blocks' layout, in ftype

uint32_t file_type(Dtype dtype) {
    for (const FileType& type : kTypes)
        if (type.dtype == dtype)
            return type.number + (is_quantized(dtype) ? kBlockVersion * kVersionFactor : 0);
    fail("expected a type that ggml files are written in, found ", name_of(dtype));
}

// Little-endian numbers, and the rest.
class Writer {
  public:
    explicit Writer(const AtomicFile& file) : out_(file.fd(), file.name()) {}

    void number(int64_t value) {
        const auto narrow = static_cast<uint32_t>(value);
        out_.write(&narrow, sizeof narrow);
    }
    void bytes(const std::string& bytes) { out_.write(bytes); }
    void text(const std::string& text) {
        number(static_cast<int64_t>(text.size()));
        out_.write(text);
    }
    void values(std::span<const float> values, Dtype dtype, const std::string& name) {
        const ProfileSpan span("convert");
        if (!is_quantized(dtype)) return write_values(out_, values, dtype, name);
        const auto n = static_cast<int64_t>(values.size());
        std::vector<std::byte> blocks(row_bytes(dtype, n));
        quantize(blocks.data(), values.data(), dtype, n);
        out_.write(blocks.data(), blocks.size());
    }
    void flush() { out_.flush(); }

  private:
    ByteWriter out_;
};

// The bytes of the tokens of text, by id: those below <|endoftext|>.
std::vector<std::string> text_tokens(const Tokenizer& tokenizer) {
    std::vector<std::string> tokens;
    for (int32_t id = 0; id < tokenizer.special().eot; ++id)
        tokens.push_back(tokenizer.bpe().has(id) ? tokenizer.bpe().bytes_of(id) : "");
    return tokens;
}

// A ggml file has no special tokens: its readers count on their places in the official models.
void check_specials(const Tokenizer& tokenizer, const std::vector<std::string>& tokens,
                    int64_t n_vocab) {
    const Tokenizer official = whisper::ggml_tokenizer(tokens, n_vocab, "the vocabulary");
    const SpecialTokens &a = official.special(), &b = tokenizer.special();
    require(a.eot == b.eot && a.sot == b.sot && a.transcribe == b.transcribe &&
                a.sot_prev == b.sot_prev && a.no_timestamps == b.no_timestamps &&
                a.timestamp_begin == b.timestamp_begin &&
                (b.languages.empty() || a.languages == b.languages),
            "ggml: expected the special tokens in the official models' places, found others");
}

void write_header(Writer& out, const Config& c, Dtype dtype) {
    out.number(0x67676d6c);
    for (const int64_t size :
         {c.n_vocab, c.n_audio_ctx, c.n_audio_state, c.n_audio_head, c.n_audio_layer, c.n_text_ctx,
          c.n_text_state, c.n_text_head, c.n_text_layer, c.n_mels})
        out.number(size);
    out.number(file_type(dtype));
    const std::vector<float> filters = mel_filters(static_cast<int>(c.n_mels));
    out.number(c.n_mels);
    out.number(static_cast<int64_t>(filters.size()) / c.n_mels);
    out.values(filters, Dtype::f32, "the mel filters");
}

void write_tensor(Writer& out, TensorSource& source, const ModelTensor& tensor, Dtype dtype) {
    const bool convolution = tensor.shape.size() == 3;
    Dtype own = tensor.matrix ? dtype : Dtype::f32;
    if (convolution && is_quantized(dtype)) own = Dtype::f16;
    std::vector<int64_t> shape = tensor.shape;
    if (tensor.name.starts_with("encoder.conv") && shape.size() == 1) shape.push_back(1);
    const std::string name = whisper::openai_name(tensor.name);
    out.number(static_cast<int64_t>(shape.size()));
    out.number(static_cast<int64_t>(name.size()));
    out.number(ggml_type(own));
    for (size_t i = shape.size(); i-- > 0;) out.number(shape[i]);
    out.bytes(name);
    const std::string where = concat(source.where(), ": ", tensor.name);
    require(shape.back() % block_size(own).values == 0, where,
            ": expected rows of whole blocks of ", block_size(own).values, " values, found ",
            shape.back());
    out.values(values_of(source, tensor), own, where);
}

}  // namespace

std::vector<Dtype> ggml_file_dtypes() {
    std::vector<Dtype> dtypes;
    for (const FileType& type : kTypes)
        if (!is_quantized(type.dtype) || can_quantize(type.dtype)) dtypes.push_back(type.dtype);
    return dtypes;
}

void write_ggml(whisper::ModelFile& model, const std::string& tokenizer_path, Dtype dtype,
                const std::filesystem::path& path,
                const std::function<void(const std::string&)>& warn) {
    const Config& config = model.config();
    require(config.n_audio_mlp == 4 * config.n_audio_state &&
                config.n_text_mlp == 4 * config.n_text_state,
            "ggml: expected MLPs of 4 times the channels, found ", config.n_audio_mlp, " and ",
            config.n_text_mlp);
    if (config.alignment_heads != whisper::default_alignment_heads(config))
        warn("the model's own alignment heads are lost: ggml files have none");
    const Tokenizer tokenizer = whisper_tokenizer(model, tokenizer_path);
    const std::vector<std::string> tokens = text_tokens(tokenizer);
    check_specials(tokenizer, tokens, config.n_vocab);
    AtomicFile file(path);
    Writer out(file);
    write_header(out, config, dtype);
    out.number(static_cast<int64_t>(tokens.size()));
    for (const std::string& token : tokens) out.text(token);
    for (const ModelTensor& tensor : tensor_list(config))
        write_tensor(out, model.tensors(), tensor, dtype);
    out.flush();
    file.commit();
}

}  // namespace hark::models
