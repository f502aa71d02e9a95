// Tokenizer files: the first byte chooses the reader. What loads must encode and decode
// without loss.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "core/error.h"
#include "fuzz/target.h"
#include "text/bpe.h"
#include "text/byte_alphabet.h"
#include "text/lines.h"
#include "text/utf8.h"

using namespace hark;
using namespace hark::fuzz;

namespace {

const std::string& byte_vocabulary() {
    static const std::string kVocabulary = [] {
        std::string json = "{";
        char32_t beyond = 0x100;
        for (char32_t byte = 0; byte < 256; ++byte) {
            const bool printable = (byte > 0x20 && byte < 0x7F) || (byte > 0xA0 && byte != 0xAD);
            json += byte ? ",\"" : "\"";
            if (byte == '"' || byte == '\\') json += '\\';
            append_code_point(json, printable ? byte : beyond++);
            json += "\":" + std::to_string(byte);
        }
        return json + ",\"he\":256,\"hel\":257}";
    }();
    return kVocabulary;
}

Bpe parse(uint8_t reader, std::string_view text) {
    const size_t half = text.find('\0');
    switch (reader % 5) {
        case 0:
            return Bpe::parse_tokenizer_json(text, "T");
        case 1:
            return Bpe::parse_vocab_and_merges(text.substr(0, half), "V",
                                               half == text.npos ? "" : text.substr(half + 1), "M");
        case 2:
            return Bpe::parse_tiktoken(text, "R");
        case 3:
            return Bpe::parse_llmc(text, "L");
        default: {
            std::vector<std::string> tokens;
            for_each_line(text, [&](std::string_view line, size_t) { tokens.emplace_back(line); });
            return Bpe::from_token_list(tokens, "L");
        }
    }
}

}  // namespace

static std::vector<std::string> tokenizer_seeds() {
    const std::string vocabulary = byte_vocabulary();
    std::string ranks;
    static const char kDigits[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (int byte = 0; byte < 256; ++byte)
        ranks += std::string{kDigits[byte >> 2], kDigits[(byte & 3) << 4]} +
                 "== " + std::to_string(byte) + "\n";
    std::string llmc(1024, '\0');
    const uint32_t fields[] = {20240328, 2, 258, 257};
    std::memcpy(llmc.data(), fields, sizeof fields);
    for (int byte = 0; byte < 256; ++byte) llmc += std::string{'\x01', static_cast<char>(byte)};
    llmc += std::string("\x02he\x07<|end|>");
    std::string list;
    for (int byte = 0; byte < 256; ++byte)
        list += spell_bytes(std::string(1, static_cast<char>(byte))) + "\n";
    return {"\x04" + list + "he\nhel\n<|endoftext|>\n<|end|>\n",
            std::string(1, '\0') + R"({"model":{"type":"BPE","vocab":)" + vocabulary +
                R"(,"merges":["h e",["he","l"]]},"pre_tokenizer":{"type":"ByteLevel",)"
                R"("add_prefix_space":false},"added_tokens":[{"id":258,"content":"<|end|>",)"
                R"("special":true}]})",
            "\x01" + vocabulary + std::string(1, '\0') + "#version: 0.2\nh e\nhe l\n",
            "\x02" + ranks + "aGU= 256\naGVs 257\n= 258\n", "\x03" + llmc};
}

static int tokenizer_input(const uint8_t* data, size_t size) {
    if (size == 0) return 0;
    const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
    try {
        const Bpe bpe = parse(data[0], text);
        const std::string sample = " hello\xC3\xA9 <|end|>" + std::string(text.substr(0, 200));
        const std::string decoded = bpe.decode(bpe.encode(sample), true);
        if (decoded != replace_invalid(sample)) std::abort();
    } catch (const Error&) {
    }
    return 0;
}

static const hark::fuzz::Target kTokenizer{"tokenizer", tokenizer_seeds, tokenizer_input};
