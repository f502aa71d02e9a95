#include "text/line_reader.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "core/error.h"
#include "text/lines.h"
#include "text/utf8.h"

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

void Utf8Check::look(std::string_view text, const std::string& name, int64_t line) {
    const size_t at = warn_ ? first_invalid(text) : text.npos;
    if (at == text.npos) return;
    const std::string_view before = text.substr(0, at);
    char byte[8];
    std::snprintf(byte, sizeof byte, "0x%02X", static_cast<unsigned>(text[at]) & 0xFF);
    warn_(concat(name, ": line ", line + std::count(before.begin(), before.end(), '\n'),
                 ": not UTF-8 (got ", byte, " as byte ", at - before.rfind('\n'),
                 " of the line); such bytes are read as U+FFFD; iconv -f ISO-8859-1 -t UTF-8 "
                 "converts Latin-1"));
    warn_ = {};
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
    utf8_.look(text, in_.name(), count_);
    while (text.ends_with('\r') || (whole_ && text.ends_with('\n'))) text.pop_back();
    return text;
}

std::string LineReader::where() const {
    return whole_ ? in_.name() : concat(in_.name(), ": line ", count_);
}

}  // namespace hark
