// Lines of a stream, each as soon as it is complete.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "core/files/io.h"

namespace hark {

// Throws Error if a zero byte shows that an input is no text: `first` is its beginning.
void require_text(std::string_view first, const std::string& name);

// Says once of an input where it is not UTF-8: such bytes are read as U+FFFD.
class Utf8Check {
  public:
    using Warn = std::function<void(const std::string& warning)>;
    // Without `warn` nothing is checked.
    explicit Utf8Check(Warn warn = {}) : warn_(std::move(warn)) {}

    // The next piece of the input `name`, which begins in line `line`, counted from 1.
    void look(std::string_view text, const std::string& name, int64_t line);

  private:
    Warn warn_;
};

class LineReader {
  public:
    // `whole`: all of the stream is one line, without the line ends at its end.
    // `warn` gets what is said of a text that is not UTF-8.
    explicit LineReader(ByteReader& in, bool whole = false, Utf8Check::Warn warn = {})
        : in_(in), whole_(whole), utf8_(std::move(warn)) {}

    // The next line without its line end; nullopt at the end of the stream. Throws Error if it is
    // longer than kMaxLineBytes (text/lines.h), or if a zero byte at the stream's beginning shows
    // that it is no text; `what` names the whole stream's text.
    std::optional<std::string> next(const char* what = "the text");
    int64_t number() const { return count_; }  // of the line that next() has returned, from 1
    // "stdin: line 3"; "stdin" if all of it is one line.
    std::string where() const;

  private:
    ByteReader& in_;
    bool whole_;
    Utf8Check utf8_;
    std::string ahead_;  // what has been read
    size_t taken_ = 0;   // bytes of it that next() has returned
    int64_t count_ = 0;
    bool ended_ = false;
};

}  // namespace hark
