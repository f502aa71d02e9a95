#include "vocabulary.h"

#include <set>
#include <vector>

#include "core/random.h"
#include "text/bpe.h"
#include "text/byte_alphabet.h"

namespace hark::bench {

Tokenizer vocabulary_of(const std::string& path, int64_t count) {
    const std::unique_ptr<Tokenizer> file = Tokenizer::load(path);
    std::vector<std::string> tokens;
    std::set<std::string> known;
    const auto add = [&](const std::string& bytes) {
        if (!bytes.empty() && known.insert(bytes).second) tokens.push_back(bytes);
    };
    for (int32_t id = 0; id < file->vocab_size() && std::ssize(tokens) < count; ++id)
        if (file->has(id) && !file->is_special(id)) add(file->bytes_of(id));
    const size_t given = tokens.size();
    for (uint64_t i = 0; std::ssize(tokens) < count; ++i) {
        const auto drawn = [&](uint64_t which) {
            return tokens[static_cast<size_t>(uniform_at(which, i) * static_cast<double>(given))];
        };
        const std::string pair = drawn(1) + drawn(2);
        if (pair.size() <= 24) add(pair);
    }
    for (std::string& token : tokens) token = spell_bytes(token);
    tokens.back() = "<|endoftext|>";
    return Tokenizer::from_bpe(Bpe::from_token_list(tokens, "the vocabulary"), "the vocabulary");
}

}  // namespace hark::bench
