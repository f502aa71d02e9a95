// Word error rates as a table, tsv or jsonl.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "eval/word_errors.h"

namespace hark {

// Takes the recordings' comparisons one by one and hands text to `write`, in whole lines.
class ErrorReport {
  public:
    using Write = std::function<void(const std::string&)>;
    virtual ~ErrorReport() = default;

    virtual void recording(const std::string& source, const std::string& channel,
                           const Comparison& comparison) = 0;
    virtual void total(const ErrorCounts& counts, int64_t recordings) = 0;
};

// The names: text, tsv, jsonl.
const std::vector<std::string>& error_report_formats();

// `differences`: the aligned words too (text and jsonl). Throws Error for an unknown format.
std::unique_ptr<ErrorReport> make_error_report(const std::string& format, bool differences,
                                               ErrorReport::Write write);

// The words of both, one above the other, in lines of about `columns` terminal columns, with S, D
// and I under what differs; lines without a difference are left out.
std::string differences_as_text(const Comparison& comparison, int columns);

}  // namespace hark
