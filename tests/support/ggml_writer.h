// Whisper models as whisper.cpp's files have them, written by hand.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace hark::test {

inline std::string i32s(std::initializer_list<int64_t> values) {
    std::string bytes;
    for (const int64_t value : values)
        for (int shift = 0; shift < 32; shift += 8)
            bytes.push_back(static_cast<char>(value >> shift & 255));
    return bytes;
}

// A file in parts, so that a test can change one.
struct GgmlParts {
    // n_vocab, n_audio_ctx, state, head, layer, n_text_ctx, state, head, layer, n_mels, ftype
    std::vector<int64_t> sizes = {1865, 1500, 32, 2, 1, 448, 32, 2, 1, 2, 1};
    int64_t mels = 2, bins = 201;
    std::vector<std::string> tokens;
    std::vector<std::string> tensors;

    std::string text() const {
        std::string bytes = "lmgg";
        for (const int64_t size : sizes) bytes += i32s({size});
        bytes += i32s({mels, bins}) + std::string(static_cast<size_t>(mels * bins) * 4, '\0');
        bytes += i32s({static_cast<int64_t>(tokens.size())});
        for (const std::string& token : tokens)
            bytes += i32s({static_cast<int64_t>(token.size())}) + token;
        for (const std::string& tensor : tensors) bytes += tensor;
        return bytes;
    }
    // `lengths` outermost first, as a Tensor has them; `type` is ggml's number.
    static std::string tensor(const std::string& name, int64_t type,
                              const std::vector<int64_t>& lengths, const std::string& data) {
        std::string bytes =
            i32s({static_cast<int64_t>(lengths.size()), static_cast<int64_t>(name.size()), type});
        for (size_t i = lengths.size(); i-- > 0;) bytes += i32s({lengths[i]});
        return bytes + name + data;
    }
};

}  // namespace hark::test
