// Transcripts that hark-redact reads, from any program, and the texts in them.
#include <cmath>
#include <cstdlib>

#include "core/error.h"
#include "core/json/json.h"
#include "fuzz/target.h"
#include "operations/redact/transcript_redactor.h"
#include "text/utf8.h"

using namespace hark;
using namespace hark::fuzz;
using namespace hark::redact;

static std::vector<std::string> redact_seeds() {
    return {
        R"({"source":"a","start":0,"end":2.5,"text":" Call 415-555-0123, or a@b.org.","tokens":[1],)"
        R"("words":[{"word":" Call","start":0,"end":1},{"word":" 415-555-0123, or a@b.org.",)"
        R"("start":1,"end":2.5}]})"
        "\n"
        R"({"source":"a","start":2.5,"text":" four one five, double oh seven","note":["1.5.1984"]})"
        "\n"
        R"({"source":"b","text":"DE89 3704 0044 0532 0130 00 and 4111 1111 1111 1111"})"
        "\n"
        R"({"source":"b","error":"b: broken"})",
        "plus four four uh seven seven double oh nine, anna dot schmidt at example dot com, the "
        "twenty first of May nineteen eighty four, \xc3\x89t\xc3\xa9 (415) 555-0123",
        "IBAN DE89370400440532013000, or GB82 WEST 1234 5698 7654 32."};
}

// Findings are in order, apart, and of whole code points.
static void check_findings(const Finder& finder, const std::string& text) {
    size_t done = 0;
    const auto is_inside = [&](size_t at) {
        return at < text.size() && (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80;
    };
    for (const Finding& finding : finder.find(text)) {
        if (finding.begin < done || finding.end <= finding.begin || finding.end > text.size() ||
            is_inside(finding.begin) || is_inside(finding.end))
            std::abort();
        done = finding.end;
    }
}

// Without `mute` each line that is taken is written.
static void redact_lines(const Finder& finder, const std::string& text,
                         const TranscriptRedactor::Mute& mute) {
    size_t lines = 0, written = 0;
    TranscriptRedactor redactor(
        finder,
        [&](const std::string& line) {
            ++written;
            if (!parse_json(line, "a line").is_object()) std::abort();
        },
        mute);
    try {
        for (size_t at = 0, end; at < text.size(); at = end + 1) {
            end = std::min(text.find('\n', at), text.size());
            redactor.add(text.substr(at, end - at), "line");
            ++lines;
        }
    } catch (const Error&) {
    }
    redactor.finish();
    if (written != lines && !mute) std::abort();
}

static int redact_input(const uint8_t* data, size_t size) {
    static const Finder finder = [] {
        WordList words;
        words.add("\xc3\x89t\xc3\xa9");
        words.add("call me");
        return Finder({std::begin(kKinds), std::end(kKinds)}, std::move(words));
    }();
    const std::string text(reinterpret_cast<const char*>(data), size);
    check_findings(finder, replace_invalid(text));
    redact_lines(finder, text, nullptr);
    try {
        redact_lines(finder, text, [](const std::string&, double begin, double end) {
            if (!std::isfinite(begin) || !std::isfinite(end)) std::abort();
        });
    } catch (const Error&) {  // a segment that has no times to mute
    }
    return 0;
}

static const hark::fuzz::Target kRedact{"redact", redact_seeds, redact_input};
