#include "whisper/output/strings.h"

#include <zlib.h>

#include <algorithm>
#include <vector>

#include "core/error.h"
#include "text/unicode.h"
#include "text/utf8.h"

namespace hark::whisper {

double compression_ratio(const std::string& text) {
    uLongf bytes = compressBound(text.size());
    std::vector<Bytef> packed(bytes);
    const int status = compress2(packed.data(), &bytes, reinterpret_cast<const Bytef*>(text.data()),
                                 text.size(), Z_DEFAULT_COMPRESSION);
    require(status == Z_OK, "zlib: compression failed with status ", status);
    return static_cast<double>(text.size()) / static_cast<double>(bytes);
}

std::string strip(const std::string& text) {
    size_t begin = text.size(), end = 0;
    for (size_t at = 0; at < text.size();) {
        const size_t start = at;
        if (is_space(next_code_point(text, at))) continue;
        begin = std::min(begin, start);
        end = at;
    }
    return begin < end ? text.substr(begin, end - begin) : "";
}

std::string one_line(std::string text) {
    for (char& byte : text) {
        const auto value = static_cast<unsigned char>(byte);
        if ((value < 0x20 && byte != '\t') || value == 0x7f) byte = ' ';
    }
    return text;
}

int64_t repeats(std::span<const int32_t> text) {
    constexpr size_t kShortest = 8;
    int64_t most = 1;
    for (size_t period = 1; 2 * period <= text.size(); ++period) {
        size_t same = 0;  // consecutive tokens that equal the token one period before
        for (size_t i = period; i < text.size(); ++i) {
            same = text[i] == text[i - period] ? same + 1 : 0;
            const size_t times = same / period + 1;
            if (times * period >= kShortest) most = std::max(most, static_cast<int64_t>(times));
        }
    }
    return most;
}

}  // namespace hark::whisper
