#include "eval/english_numbers.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "text/decimal.h"
#include "text/regex.h"
#include "text/unicode.h"
#include "text/utf8.h"

namespace hark {
namespace {

enum class Kind {
    none,        // no word of numbers
    zero,        // o, oh, zero
    one,         // one to nineteen
    ten,         // twenty to ninety
    multiplier,  // a power of ten: hundred, thousand, ...
    ahead,       // a sign: minus
    unit,        // a currency: dollars
    percent,
    per,
    conjunction,  // and
    repeat,       // double, triple
    point,
};

struct Word {
    Kind kind = Kind::none;
    int value = 0;         // of zero to ten; a multiplier's power of ten; how often repeat repeats
    std::string suffix;    // "s", "st", "nd", "rd", "th": a number ends here
    std::string symbol{};  // of a sign, currency or percent

    bool is(Kind k) const { return kind == k && suffix.empty(); }
    // Whether it may follow "point".
    bool is_decimal() const { return is(Kind::zero) || is(Kind::one) || is(Kind::ten); }
};

using Words = std::unordered_map<std::string, Word>;

void add_number(Words& words, Kind kind, const std::string& name, int value,
                const std::string& plural, const std::string& ordinal) {
    words[name] = {kind, value, ""};
    words[plural] = {kind, value, "s"};
    if (!ordinal.empty()) words[ordinal] = {kind, value, "th"};
}

Words make_words() {
    Words words;
    for (const char* name : {"o", "oh", "zero"}) words[name] = {Kind::zero, 0, ""};
    const char* const kOnes[] = {"one",     "two",       "three",    "four",     "five",
                                 "six",     "seven",     "eight",    "nine",     "ten",
                                 "eleven",  "twelve",    "thirteen", "fourteen", "fifteen",
                                 "sixteen", "seventeen", "eighteen", "nineteen"};
    int value = 0;
    for (const std::string name : kOnes) {
        ++value;
        // Regular ordinals only, which makes the ninth "nineth": so does the reference.
        const bool regular = value > 3 && value != 5 && value != 12;
        add_number(words, Kind::one, name, value, name + (value == 6 ? "es" : "s"),
                   regular ? name + (name.ends_with('t') ? "h" : "th") : "");
    }
    words["zeroth"] = {Kind::one, 0, "th"};
    words["first"] = {Kind::one, 1, "st"};
    words["second"] = {Kind::one, 2, "nd"};
    words["third"] = {Kind::one, 3, "rd"};
    words["fifth"] = {Kind::one, 5, "th"};
    words["twelfth"] = {Kind::one, 12, "th"};
    value = 10;
    for (const std::string stem :
         {"twent", "thirt", "fort", "fift", "sixt", "sevent", "eight", "ninet"})
        add_number(words, Kind::ten, stem + "y", value += 10, stem + "ies", stem + "ieth");
    const std::pair<const char*, int> kMultipliers[] = {
        {"hundred", 2},     {"thousand", 3},     {"million", 6},      {"billion", 9},
        {"trillion", 12},   {"quadrillion", 15}, {"quintillion", 18}, {"sextillion", 21},
        {"septillion", 24}, {"octillion", 27},   {"nonillion", 30},   {"decillion", 33}};
    for (const auto& [name, power] : kMultipliers)
        add_number(words, Kind::multiplier, name, power, std::string(name) + "s",
                   std::string(name) + "th");
    for (const char* name : {"minus", "negative"}) words[name] = {Kind::ahead, 0, "", "-"};
    for (const char* name : {"plus", "positive"}) words[name] = {Kind::ahead, 0, "", "+"};
    const std::pair<const char*, const char*> kCurrencies[] = {
        {"pound", "£"}, {"euro", "€"}, {"dollar", "$"}, {"cent", "¢"}};
    for (const auto& [name, symbol] : kCurrencies)
        for (const char* plural : {"", "s"})
            words[std::string(name) + plural] = {Kind::unit, 0, "", symbol};
    words["percent"] = {Kind::percent, 0, "", "%"};
    words["per"] = {Kind::per, 0, "", "%"};
    words["and"] = {Kind::conjunction, 0, ""};
    words["double"] = {Kind::repeat, 2, ""};
    words["triple"] = {Kind::repeat, 3, ""};
    words["point"] = {Kind::point, 0, ""};
    return words;
}

const Word& word_of(std::string_view text) {
    static const Words kWords = make_words();
    static const Word kNone;
    const auto found = kWords.find(std::string(text));
    return found == kWords.end() ? kNone : found->second;
}

// Digits, and perhaps a point with more of them.
bool is_numeric(std::string_view text) {
    size_t digits = 0, points = 0;
    for (size_t at = 0; at < text.size();) {
        const char32_t c = next_code_point(text, at);
        if (digit_value(c) >= 0) {
            ++digits;
        } else {
            if (c != U'.' || digits == 0 || points++ > 0) return false;
            digits = 0;
        }
    }
    return digits > 0;
}

// "$20" -> "$"; empty where the word begins with neither a sign nor a currency.
std::string_view prefix_of(std::string_view word) {
    for (std::string_view symbol : {"-", "+", "£", "€", "$", "¢"})
        if (word.starts_with(symbol)) return symbol;
    return "";
}

// Reads words one at a time with a look at their neighbours.
class NumberReader {
  public:
    std::string read(const std::vector<std::string_view>& words);

  private:
    // A number that may continue: whole, to be added to and multiplied, or digits and points that
    // others are appended to.
    struct Value {
        std::string digits;
        bool whole;
    };

    void numeric(std::string_view word);
    void small(const Word& word);
    void multiplier(const Word& word);
    void unit(std::string_view text, const Word& word);
    void special(std::string_view text, const Word& word);

    Value joined(const Word& word) const;
    void append(const std::string& digits);
    void write(std::string_view text);
    void write_value(std::string_view suffix = "");

    std::optional<Value> value_;
    std::string prefix_;
    Word before_, after_;
    std::string_view after_text_;
    bool after_numeric_ = false;
    bool skip_next_ = false;
    std::string out_;
};

// Ends the number: what is written takes the prefix along.
void NumberReader::write(std::string_view text) {
    if (!out_.empty()) out_ += ' ';
    out_ += prefix_;
    out_ += text;
    prefix_.clear();
    value_.reset();
}

void NumberReader::write_value(std::string_view suffix) {
    if (value_) write(value_->digits + std::string(suffix));
}

// Appends digits to the value; a whole zero is replaced by them.
void NumberReader::append(const std::string& digits) {
    const bool nothing = !value_ || (value_->whole && value_->digits == "0");
    value_ = Value{(nothing ? "" : value_->digits) + digits, false};
}

void NumberReader::numeric(std::string_view word) {
    const std::string_view prefix = prefix_of(word);
    if (value_ && !value_->whole && value_->digits.ends_with('.')) {
        value_->digits += word;  // decimals, or the parts of an IP address
        return;
    }
    write_value();
    if (!prefix.empty()) prefix_ = prefix;
    const std::string_view digits = word.substr(prefix.size());
    const std::optional<std::string> whole = whole_product(digits, 0);
    value_ = whole ? Value{*whole, true} : Value{std::string(digits), false};
}

// The value with one to nineteen, or twenty to ninety, added or appended.
NumberReader::Value NumberReader::joined(const Word& word) const {
    const std::string digits = std::to_string(word.value);
    if (!value_) return {digits, true};
    const bool single = word.kind == Kind::one && word.value < 10;
    if (word.kind == Kind::one && (!value_->whole || before_.is(Kind::one))) {
        // "five twenty four": the last zero gives way.
        const bool replaces = single && before_.is(Kind::ten) && value_->digits.ends_with('0');
        return {value_->digits.substr(0, value_->digits.size() - replaces) + digits, false};
    }
    if (value_->whole && is_multiple_of_power_of_ten(value_->digits, single ? 1 : 2))
        return {add(value_->digits, digits), true};
    return {value_->digits + digits, false};
}

void NumberReader::small(const Word& word) {
    value_ = joined(word);
    if (word.suffix.empty()) return;
    write_value(word.suffix);
}

void NumberReader::multiplier(const Word& word) {
    const auto power = static_cast<size_t>(word.value);
    const Value itself{times_power_of_ten("1", power), true};
    if (!value_) {
        value_ = itself;
    } else if (value_->whole) {
        // Only what is below a thousand is multiplied.
        const size_t head = value_->digits.size() > 3 ? value_->digits.size() - 3 : 0;
        const std::string thousands = value_->digits.substr(0, head) + "000";
        const std::string rest = decimal(value_->digits.substr(head));
        value_->digits = add(decimal(thousands), times_power_of_ten(rest, power));
    } else if (const auto product = whole_product(value_->digits, power)) {
        value_ = Value{*product, true};
    } else {
        write_value();
        value_ = itself;
    }
    if (!word.suffix.empty()) write_value(word.suffix);
}

// Currencies and percent, which only a number makes symbols of.
void NumberReader::unit(std::string_view text, const Word& word) {
    if (!value_) return write(text);
    if (word.kind == Kind::unit) {
        prefix_ = word.symbol;
        return write_value();
    }
    if (word.kind == Kind::percent) return write_value(word.symbol);
    skip_next_ = after_text_ == "cent";
    write_value(skip_next_ ? word.symbol : "");
    if (!skip_next_) write(text);
}

void NumberReader::special(std::string_view text, const Word& word) {
    const bool goes_on = after_.kind != Kind::none || after_numeric_;
    const auto as_a_word = [&] {
        write_value();
        write(text);
    };
    if (!goes_on) return as_a_word();
    if (word.kind == Kind::conjunction) {
        if (!before_.is(Kind::multiplier)) as_a_word();
    } else if (word.kind == Kind::repeat) {
        if (!after_.is(Kind::one) && !after_.is(Kind::zero)) return as_a_word();
        std::string digits;
        for (int i = 0; i < word.value; ++i) digits += std::to_string(after_.value);
        append(digits);
        skip_next_ = true;
    } else if (after_.is_decimal() || after_numeric_) {
        append(".");
    }
}

std::string NumberReader::read(const std::vector<std::string_view>& words) {
    for (size_t i = 0; i < words.size(); ++i) {
        if (std::exchange(skip_next_, false)) continue;
        const std::string_view text = words[i];
        const Word& word = word_of(text);
        before_ = i > 0 ? word_of(words[i - 1]) : Word();
        after_text_ = i + 1 < words.size() ? words[i + 1] : "";
        after_ = word_of(after_text_);
        after_numeric_ = is_numeric(after_text_);
        if (is_numeric(text.substr(prefix_of(text).size()))) {
            numeric(text);
            continue;
        }
        switch (word.kind) {
            case Kind::none:
                write_value();
                write(text);
                break;
            case Kind::zero:
                append("0");
                break;
            case Kind::one:
            case Kind::ten:
                small(word);
                break;
            case Kind::multiplier:
                multiplier(word);
                break;
            case Kind::ahead:
                write_value();
                if (after_.kind != Kind::none || after_numeric_)
                    prefix_ = word.symbol;
                else
                    write(text);
                break;
            case Kind::unit:
            case Kind::percent:
            case Kind::per:
                unit(text, word);
                break;
            case Kind::conjunction:
            case Kind::repeat:
            case Kind::point:
                special(text, word);
        }
    }
    write_value();
    return std::move(out_);
}

bool is_ascii_digit(char c) { return c >= '0' && c <= '9'; }
bool is_ascii_letter(char c) { return c >= 'a' && c <= 'z'; }

// "3 and a half" -> "3 point five", where the word ahead is a spoken number.
std::string with_halves_as_points(std::string_view text) {
    static const Regex kHalf(HARK_RE_BEGIN "and[" HARK_RE_SPACES "]+a[" HARK_RE_SPACES
                                           "]+half" HARK_RE_END);
    const std::vector<std::string_view> parts = kHalf.split(text);
    std::string out;
    const auto append = [&](std::string_view part) {
        if (!out.empty()) out += ' ';
        out += part;
    };
    for (size_t i = 0; i < parts.size(); ++i) {
        const std::vector<std::string_view> words = words_of(parts[i]);
        if (words.empty()) continue;
        append(parts[i]);
        if (i + 1 == parts.size()) break;
        const Word& last = word_of(words.back());
        append(last.is_decimal() || last.is(Kind::multiplier) ? "point five" : "and a half");
    }
    return out;
}

// "b747" -> "b 747", but "10 th" -> "10th".
std::string with_numbers_apart(std::string_view text) {
    static const Regex kSuffix("([0-9])[" HARK_RE_SPACES "]+(st|nd|rd|th|s)" HARK_RE_END);
    std::string out;
    for (size_t i = 0; i < text.size(); ++i) {
        out += text[i];
        if (i + 1 == text.size()) break;
        if ((is_ascii_letter(text[i]) && is_ascii_digit(text[i + 1])) ||
            (is_ascii_digit(text[i]) && is_ascii_letter(text[i + 1])))
            out += ' ';
    }
    return kSuffix.replace(out, "\\1\\2");
}

// "$2 and ¢7" -> "$2.07", "$0.36" -> "¢36", "1s" -> "ones".
std::string with_coins_and_ones(std::string_view text) {
    static const Regex kCoins("([€£$])([0-9]+) (?:and )?¢([0-9]{1,2})" HARK_RE_END);
    static const Regex kOnlyCoins("[€£$]0[^\\n]([0-9]{1,2})" HARK_RE_END);
    static const Regex kOne(HARK_RE_BEGIN "1(s?)" HARK_RE_END);
    std::string s = kCoins.replace(text, [](const Regex::Groups& groups) {
        const std::string coins(groups[3]);
        return std::string(groups[1]) + std::string(groups[2]) + "." +
               (coins.size() < 2 ? "0" : "") + coins;
    });
    s = kOnlyCoins.replace(s, [](const Regex::Groups& groups) { return "¢" + decimal(groups[1]); });
    return kOne.replace(s, "one\\1");
}

}  // namespace

std::string normalize_english_numbers(std::string_view text) {
    const std::string s = with_numbers_apart(with_halves_as_points(text));
    return with_coins_and_ones(NumberReader().read(words_of(s)));
}

}  // namespace hark
