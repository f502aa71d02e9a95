// Tokenizers of language models. The first byte chooses the reader: tokenizer.json with the values
// of tokenizer_config.json after a zero byte, or a GGUF file. What loads must encode any text to
// ids that it has, and decode any of its ids to valid UTF-8.
#include <cstdlib>

#include "core/error.h"
#include "formats/gguf.h"
#include "fuzz/golden.h"
#include "fuzz/memory_file.h"
#include "fuzz/target.h"
#include "support/gguf_writer.h"
#include "text/byte_alphabet.h"
#include "text/tokenizer.h"
#include "text/utf8.h"

using namespace hark;
using namespace hark::fuzz;

namespace {

Tokenizer parse(uint8_t reader, const uint8_t* data, size_t size) {
    if (reader % 2 == 1) {
        const fuzz::MemoryFile input(data, size);
        return Tokenizer::from_gguf(GgufFile(input.path()));
    }
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const size_t half = text.find('\0');
    return Tokenizer::parse_json(text.substr(0, half),
                                 half == text.npos ? "" : text.substr(half + 1), "T");
}

// More words than a cache of words begins with.
const std::string& many_words() {
    static const std::string words = [] {
        std::string text;
        for (int i = 0; i < 300; ++i)
            text += " he" + std::string(1, static_cast<char>('a' + i % 26)) + std::to_string(i);
        return text;
    }();
    return words;
}

void encode_and_decode(const Tokenizer& tokenizer, std::string_view sample) {
    auto ids = tokenizer.encode(sample, {.parse_specials = true, .add_specials = true});
    const std::vector<PromptPiece> pieces = {
        {"<s>", true}, {std::string(sample), false}, {" e", true}};
    for (const int32_t id : tokenizer.encode(pieces, false)) ids.push_back(id);
    for (const int32_t id : ids)
        if (!tokenizer.has(id)) std::abort();
    for (int32_t id = 0; id < tokenizer.vocab_size() && id < 300; ++id)
        if (tokenizer.has(id)) ids.push_back(id);
    for (const bool with_specials : {false, true})
        if (!is_valid_utf8(tokenizer.decode(ids, with_specials))) std::abort();
}

std::string gguf_seed(const std::string& kind, const std::string& pre = "qwen2") {
    test::GgufWriter file;
    file.text("tokenizer.ggml.model", kind);
    file.texts("tokenizer.ggml.tokens", {"<unk>", "<s>", "<0x41>", "\xE2\x96\x81", "a",
                                         "\xE2\x96\x81"
                                         "a",
                                         "  "});
    file.i32s("tokenizer.ggml.token_type", {2, 3, 6, 1, 1, 1, 4});
    if (kind == "gpt2") {
        file.text("tokenizer.ggml.pre", pre);
        file.texts("tokenizer.ggml.merges", {"\xE2\x96\x81 a"});
    }
    std::string scores = file.number<uint32_t>(6) + file.number<uint64_t>(7);
    for (int i = 0; i < 7; ++i) scores += file.number(static_cast<float>(-i));
    file.key("tokenizer.ggml.scores", 9, scores);
    file.u32("tokenizer.ggml.bos_token_id", 1);
    return "\x01" + file.bytes();
}

std::string json_seed(const std::string& parts) {
    return std::string(1, '\0') +
           R"({"added_tokens":[{"id":5,"content":"<s>","special":true,)"
           R"("lstrip":true,"rstrip":true,"normalized":false},{"id":6,"content":"he",)"
           R"("single_word":true,"normalized":true}],)" +
           parts + "}" + std::string(1, '\0') +
           R"({"bos_token":"<s>","eos_token":{"content":"<s>"},"tokenizer_class":"LlamaTokenizer"})";
}

}  // namespace

static std::vector<std::string> model_tokenizer_seeds() {
    const std::string bpe =
        R"("model":{"type":"BPE","unk_token":"<unk>","fuse_unk":true,)"
        R"("byte_fallback":true,"ignore_merges":true,"vocab":{"<unk>":0,"h":1,"e":2,"h e":3,"<0xE2>":4},"merges":[]})";
    std::vector<std::string> seeds = {
        json_seed(
            R"("normalizer":{"type":"Sequence","normalizers":[{"type":"NFC"},{"type":"Prepend","prepend":"_"},)"
            R"({"type":"Replace","pattern":{"String":" "},"content":"_"},{"type":"Strip"}]},)"
            R"("pre_tokenizer":{"type":"Sequence","pretokenizers":[{"type":"Split","pattern":)"
            R"({"Regex":"\\p{L}+|\\s+"},"behavior":"MergedWithNext","invert":true},)"
            R"({"type":"Digits"},{"type":"Punctuation"},{"type":"Metaspace","prepend_scheme":"first"}]},)"
            R"("post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<s>"}},)"
            R"({"Sequence":{"id":"A"}}],"special_tokens":{"<s>":{"ids":[5]}}},)"
            R"("decoder":{"type":"Sequence","decoders":[{"type":"Replace","pattern":{"String":"_"},)"
            R"("content":" "},{"type":"ByteFallback"},{"type":"Fuse"},)"
            R"({"type":"Strip","content":" ","start":1,"stop":0}]},)" +
            bpe),
        json_seed(R"("pre_tokenizer":{"type":"ByteLevel"},"decoder":{"type":"ByteLevel"},)" + bpe),
        json_seed(R"("decoder":{"type":"Metaspace"},"model":{"type":"Unigram","unk_id":0,"vocab":)"
                  R"([["<unk>",0],["h",-1.5],["e",-2],["he",-2.5],["a",-3]]})"),
        gguf_seed("llama"),
        gguf_seed("gpt2"),
        gguf_seed("gpt2", "none")};
    for (const auto& file : golden_files("model_tokenizers", ".json")) {
        const nlohmann::ordered_json model = nlohmann::ordered_json::parse(content(file));
        seeds.push_back(std::string(1, '\0') + model["tokenizer"].dump() + '\0' +
                        model["config"].dump());
    }
    for (const auto& file : golden_files("model_tokenizers", ".gguf"))
        seeds.push_back("\x01" + content(file));
    return seeds;
}

static int model_tokenizer_input(const uint8_t* data, size_t size) {
    if (size == 0) return 0;
    try {
        const Tokenizer tokenizer = parse(data[0], data + 1, size - 1);
        const std::string_view text(reinterpret_cast<const char*>(data),
                                    std::min<size_t>(size, 300));
        encode_and_decode(
            tokenizer, " hello\xC3\xA9 <s> \xE2\x82\xAC 12he e" + std::string(text) + many_words());
    } catch (const Error&) {
    }
    return 0;
}

static const hark::fuzz::Target kModelTokenizer{"model_tokenizer", model_tokenizer_seeds,
                                                model_tokenizer_input};
