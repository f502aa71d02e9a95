// Sentencepiece models: what loads must encode and decode, whatever its pieces say.
#include "core/error.h"
#include "fuzz/seeds.h"
#include "text/tokens/sentencepiece.h"

using namespace hark;

std::vector<std::string> fuzz::fuzz_seeds() {
    std::vector<std::string> seeds;
    for (const char* kind : {"unigram", "bpe"}) {
        int line = 0;
        seeds.push_back(train_sentencepiece({kind, 320}, [&]() -> std::optional<std::string> {
            if (++line > 60) return std::nullopt;
            return "a line of text, number " + std::to_string(line * line * 7919);
        }));
    }
    return seeds;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const std::string_view model(reinterpret_cast<const char*>(data), size);
    try {
        const auto tokenizer = load_sentencepiece(model, "M");
        std::vector<int32_t> ids;
        tokenizer->encoder()->encode(" a text,\n with caf\xC3\xA9 and \xF0\x9F\x98\x80  ", ids,
                                     true);
        const auto decoder = tokenizer->decoder();
        decoder->push(ids);
        decoder->finish();
        tokenizer->end_of_text();
    } catch (const Error&) {
    }
    return 0;
}
