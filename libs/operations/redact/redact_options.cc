#include "operations/redact/redact_options.h"

#include <algorithm>

#include "core/error.h"

namespace hark::redact {
namespace {

std::vector<Kind> kinds_named(const std::vector<std::string>& names) {
    std::vector<Kind> kinds;
    for (const Kind kind : kKinds)
        if (std::find(names.begin(), names.end(), name_of(kind)) != names.end())
            kinds.push_back(kind);
    return kinds;
}

}  // namespace

void RedactOptions::flags(Flags& flags) {
    flags.section("What is replaced");
    flags.add("kinds", kinds, "LIST of email, phone, iban, card, date, number")
        .essential()
        .details("number: other runs of seven digits and more, as of accounts and insurances.")
        .suggests({"email", "phone", "iban", "card", "date", "number"});
    flags.add_repeated("words", words, "FILE of words and phrases to replace too, one per line")
        .essential()
        .completes(Completes::file)
        .details(
            "Names above all: nothing else finds them. Whole words, whatever their capitals. "
            "Lines that begin with # are left out.");
    flags.section("Output");
    flags.add_name("mute-list", mute_list, "FILE for ffmpeg's filter that mutes what is replaced")
        .essential()
        .completes(Completes::file)
        .details(
            "For ffmpeg -filter_script:a FILE, and one recording. Without the times of words "
            "(whisper-transcribe --word-timestamps) whole segments are muted.");
}

void RedactOptions::check() const {
    for (const std::string& name : kinds) {
        const bool known = name != name_of(Kind::listed) && !kinds_named({name}).empty();
        require_usage(known, "--kinds: expected email, phone, iban, card, date or number (got '",
                      name, "')");
    }
    require_usage(!kinds.empty() || !words.empty(), "--kinds and --words: nothing to look for");
}

Finder RedactOptions::finder() const {
    WordList list;
    for (const std::string& file : words) list.add_file(file);
    return Finder(kinds_named(kinds), std::move(list));
}

std::string RedactOptions::report(const std::map<Kind, int64_t>& counts) const {
    std::string found;
    for (const auto& [kind, count] : counts)
        found += concat(found.empty() ? "" : ", ", name_of(kind), " ", count);
    return concat("replaced: ", found.empty() ? "nothing" : found,
                  "; names stay: see docs/confidential.md");
}

}  // namespace hark::redact
