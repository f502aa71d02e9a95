#include "text/line_reader.h"

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "text/lines.h"

namespace hark {
namespace {

constexpr size_t kReadAtOnce = size_t{1} << 16;

// Recordings, tensor streams, models and UTF-16 have a zero byte in their first ones.
constexpr size_t kExamined = 1024;

}  // namespace

void require_text(std::string_view first, const std::string& name) {
    const size_t zero = first.substr(0, kExamined).find('\0');
    require(zero == std::string::npos, name, ": this is no text (got a zero byte at offset ", zero,
            ", expected UTF-8); hark transcribe makes text of a recording");
}

std::optional<std::string> LineReader::next(const char* what) {
    size_t end = whole_ ? std::string::npos : ahead_.find('\n', taken_);
    while (!ended_ && end == std::string::npos && ahead_.size() - taken_ <= kMaxLineBytes) {
        // Erase returned bytes once per piece, not once per line.
        ahead_.erase(0, std::exchange(taken_, 0));
        const size_t have = ahead_.size();
        ahead_.resize(have + kReadAtOnce);
        const size_t got = in_.read_some(ahead_.data() + have, kReadAtOnce);
        ahead_.resize(have + got);
        ended_ = got == 0;
        if (!whole_) end = ahead_.find('\n', have);
    }
    if (taken_ == ahead_.size()) return std::nullopt;
    ++count_;
    if (end == std::string::npos) end = ahead_.size();
    require(end - taken_ <= kMaxLineBytes,
            whole_ ? in_.name() + ": " + what : where() + ": the line", " is longer than ",
            kMaxLineBytes >> 20, " MiB");
    if (count_ == 1) require_text(ahead_, in_.name());
    std::string text = ahead_.substr(taken_, end - taken_);
    taken_ = std::min(end + 1, ahead_.size());
    while (text.ends_with('\r') || (whole_ && text.ends_with('\n'))) text.pop_back();
    return text;
}

std::string LineReader::where() const {
    return whole_ ? in_.name() : concat(in_.name(), ": line ", count_);
}

}  // namespace hark
