// Sentencepiece models: what loads must encode and decode, whatever its pieces say.
#include <cstdlib>

#include "core/error.h"
#include "fuzz/golden.h"
#include "fuzz/target.h"
#include "text/tokenizer.h"
#include "text/tokens/sentencepiece.h"
#include "text/utf8.h"

using namespace hark;
using namespace hark::fuzz;

static std::vector<std::string> sentencepiece_seeds() {
    std::vector<std::string> seeds;
    for (const char* kind : {"unigram", "bpe"}) {
        int line = 0;
        seeds.push_back(train_sentencepiece({kind, 320}, [&]() -> std::optional<std::string> {
            if (++line > 60) return std::nullopt;
            return "a line of text, number " + std::to_string(line * line * 7919);
        }));
    }
    // With a normaliser's table: a is the text at 0. A later message of the field adds to the
    // first.
    const auto little = [](uint32_t value) {
        return std::string(reinterpret_cast<const char*>(&value), sizeof value);
    };
    std::string units(1024, '\0');
    units.replace(4 * 'a', 4, little('a' | 1 << 8 | 1 << 10));
    units.replace(4 * ('a' ^ 1), 4, little(1u << 31));
    const std::string map = little(1024) + units + std::string("b\0", 2);
    const auto field = [](char tag, const std::string& bytes) {
        return tag +
               std::string{static_cast<char>((bytes.size() & 127) | 128),
                           static_cast<char>(bytes.size() >> 7)} +
               bytes;
    };
    seeds.push_back(seeds[0] + field('\x1a', field('\x12', map)));
    for (const auto& file : golden_files("model_tokenizers", ".model"))
        seeds.push_back(content(file));
    return seeds;
}

static int sentencepiece_input(const uint8_t* data, size_t size) {
    const std::string_view model(reinterpret_cast<const char*>(data), size);
    try {
        const Tokenizer tokenizer = Tokenizer::parse_sentencepiece(model, "M");
        const auto ids = tokenizer.encode(" a text,\n with caf\xC3\xA9 and \xF0\x9F\x98\x80  </s>",
                                          {.parse_specials = true, .add_specials = true});
        if (!is_valid_utf8(tokenizer.decode(ids))) std::abort();
        tokenizer.end_of_text();
    } catch (const Error&) {
    }
    return 0;
}

static const hark::fuzz::Target kSentencepiece{"sentencepiece", sentencepiece_seeds,
                                               sentencepiece_input};
