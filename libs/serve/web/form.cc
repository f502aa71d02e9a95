#include "serve/web/form.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

#include "core/ascii.h"
#include "core/files/files.h"
#include "serve/web/web_error.h"

namespace hark::serve {
namespace {

constexpr size_t kMostHeadBytes = size_t{16} << 10, kMostValueBytes = size_t{256} << 10;
constexpr size_t kMostFields = 128, kMostBoundary = 70;

[[noreturn]] void refuse_form(const char* what) { throw WebError(400, concat("form: ", what)); }

std::string_view stripped(std::string_view text) {
    const size_t begin = text.find_first_not_of(" \t");
    if (begin == text.npos) return {};
    return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

// The parameter of `VALUE; name=x; name="x"`; nullopt if there is none.
std::optional<std::string> parameter(std::string_view header, std::string_view wanted) {
    size_t at = std::min(header.find(';'), header.size());
    while (at < header.size()) {
        const size_t equals = header.find('=', ++at);
        if (equals == header.npos) return std::nullopt;
        const std::string name = ascii_lower(stripped(header.substr(at, equals - at)));
        std::string value;
        at = equals + 1;
        if (at < header.size() && header[at] == '"') {
            for (++at; at < header.size() && header[at] != '"'; ++at) {
                const bool escapes = header[at] == '\\' && at + 1 < header.size() &&
                                     (header[at + 1] == '"' || header[at + 1] == '\\');
                if (escapes) ++at;
                value += header[at];
            }
            if (at >= header.size()) return std::nullopt;
            at = std::min(header.find(';', at), header.size());
        } else {
            const size_t end = std::min(header.find(';', at), header.size());
            value = stripped(header.substr(at, end - at));
            at = end;
        }
        if (name == wanted) return value;
    }
    return std::nullopt;
}

}  // namespace

SpooledFile::SpooledFile() : fd_(make_unlinked_file()) {}

SpooledFile::~SpooledFile() { ::close(fd_); }

void SpooledFile::write(std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t n = ::write(fd_, bytes.data(), bytes.size());
        if (n < 0 && errno == EINTR) continue;
        require(n >= 0, "cannot write a temporary file: ", std::strerror(errno));
        bytes.remove_prefix(static_cast<size_t>(n));
        bytes_ += static_cast<uint64_t>(n);
    }
}

std::string form_boundary(std::string_view content_type) {
    const std::string type = ascii_lower(stripped(content_type.substr(0, content_type.find(';'))));
    if (type != "multipart/form-data")
        throw WebError(415, "Content-Type: expected multipart/form-data");
    const std::string boundary = parameter(content_type, "boundary").value_or("");
    if (boundary.empty() || boundary.size() > kMostBoundary)
        refuse_form("Content-Type has no boundary of 1 to 70 characters");
    return boundary;
}

MultipartReader::MultipartReader(std::string_view boundary, Form& form)
    : delimiter_(concat("\r\n--", boundary)), form_(form), held_("\r\n") {}

void MultipartReader::add(std::string_view bytes) {
    if (state_ == State::epilogue) return;
    held_ += bytes;
    for (bool more = true; more;) {
        switch (state_) {
            case State::preamble:
            case State::value:
                more = read_to_delimiter();
                break;
            case State::delimiter:
                more = read_delimiter();
                break;
            case State::head:
                more = read_head();
                break;
            case State::epilogue:
                held_.clear();
                more = false;
        }
    }
}

void MultipartReader::finish() const {
    if (state_ != State::epilogue) refuse_form("the body ends before its last boundary");
}

bool MultipartReader::read_to_delimiter() {
    const size_t at = held_.find(delimiter_);
    const bool is_found = at != held_.npos;
    // The end of what is held may begin the delimiter.
    const size_t certain =
        is_found ? at : held_.size() - std::min(held_.size(), delimiter_.size() - 1);
    if (state_ == State::value) take(std::string_view(held_).substr(0, certain));
    held_.erase(0, is_found ? at + delimiter_.size() : certain);
    if (!is_found) return false;
    if (state_ == State::value) end_part();
    state_ = State::delimiter;
    return true;
}

bool MultipartReader::read_delimiter() {
    // Spaces may follow a boundary.
    const size_t at = held_.find_first_not_of(" \t");
    if (at == held_.npos || held_.size() < at + 2) {
        if (held_.size() > kMostHeadBytes) refuse_form("a boundary's line is too long");
        return false;
    }
    const std::string_view end = std::string_view(held_).substr(at, 2);
    if (end != "--" && end != "\r\n") refuse_form("a boundary is not the whole line");
    state_ = end == "--" ? State::epilogue : State::head;
    held_.erase(0, at);  // the head begins with the line's end
    return true;
}

bool MultipartReader::read_head() {
    const size_t end = held_.find("\r\n\r\n");
    if (std::min(end, held_.size()) > kMostHeadBytes) refuse_form("a part's head is too long");
    if (end == held_.npos) return false;
    std::optional<std::string> name;
    is_file_ = false;
    for (size_t at = 0; at < end;) {
        const size_t next = std::min(held_.find("\r\n", at + 2), end);
        const std::string_view line = std::string_view(held_).substr(at + 2, next - at - 2);
        at = next;
        const size_t colon = line.find(':');
        if (colon == line.npos ||
            ascii_lower(stripped(line.substr(0, colon))) != "content-disposition")
            continue;
        name = parameter(line.substr(colon), "name");
        is_file_ =
            parameter(line.substr(colon), "filename") || parameter(line.substr(colon), "filename*");
    }
    if (!name) refuse_form("a part has no name");
    name_ = *name;
    value_.clear();
    if (is_file_) {
        if (name_ != "file") refuse_form("a file in another field than file");
        if (form_.file) refuse_form("two files; send one");
        form_.file = std::make_shared<SpooledFile>();
    }
    held_.erase(0, end + 4);
    state_ = State::value;
    return true;
}

void MultipartReader::take(std::string_view bytes) {
    if (is_file_) return form_.file->write(bytes);
    value_ += bytes;
    if (value_.size() > kMostValueBytes) refuse_form("a field is too large");
}

void MultipartReader::end_part() {
    if (is_file_) return;
    if (form_.fields.size() >= kMostFields) refuse_form("too many fields");
    form_.fields.emplace_back(std::move(name_), std::move(value_));
}

}  // namespace hark::serve
