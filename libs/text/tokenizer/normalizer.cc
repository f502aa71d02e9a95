#include "text/tokenizer/normalizer.h"

#include "text/split.h"
#include "text/unicode.h"
#include "text/utf8.h"

namespace hark {
namespace {

NormalizeStep form_step(std::string (*form)(std::string_view)) {
    return [form](std::string& text) { text = form(text); };
}

bool space_at(std::string_view text, size_t& at) {
    return class_of(next_code_point(text, at)) == CharClass::space;
}

std::string_view stripped(std::string_view text, bool left, bool right) {
    size_t begin = 0, end = 0;
    for (size_t at = 0; left && at < text.size() && space_at(text, at);) begin = at;
    for (size_t at = begin; at < text.size();)
        if (!space_at(text, at)) end = at;
    if (!right) end = text.size();
    return begin < end ? text.substr(begin, end - begin) : std::string_view();
}

}  // namespace

std::string normalized(const Normalizer& normalizer, std::string_view text) {
    std::string made(text);
    for (const NormalizeStep& step : normalizer) step(made);
    return made;
}

NormalizeStep nfc_step() { return form_step(nfc); }
NormalizeStep nfd_step() { return form_step(nfd); }
NormalizeStep nfkc_step() { return form_step(nfkc); }
NormalizeStep nfkd_step() { return form_step(nfkd); }

NormalizeStep prepend_step(std::string prefix) {
    return [prefix](std::string& text) {
        if (!text.empty()) text.insert(0, prefix);
    };
}

NormalizeStep replace_step(Pattern pattern, std::string content) {
    return [pattern, content](std::string& text) {
        std::string made;
        size_t done = 0;
        for (Pattern::Search search(pattern, text);;) {
            const Pattern::Match match = search.next();
            if (!match.found) break;
            made.append(text, done, match.begin - done).append(content);
            done = match.end;
        }
        if (done > 0 || !made.empty()) text = made.append(text, done);
    };
}

NormalizeStep lowercase_step() {
    return [](std::string& text) {
        std::string made;
        for (size_t begin = 0, at = 0; at < text.size(); begin = at) {
            next_code_point(text, at);
            made += lower_case(std::string_view(text).substr(begin, at - begin));
        }
        text = std::move(made);
    };
}

NormalizeStep strip_step(bool left, bool right) {
    return [left, right](std::string& text) { text = std::string(stripped(text, left, right)); };
}

}  // namespace hark
