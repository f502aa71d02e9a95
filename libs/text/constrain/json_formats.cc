#include "text/constrain/json_formats.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/error.h"
#include "core/ranges.h"
#include "text/constrain/regex_pattern.h"

namespace hark {
namespace {

// RFC 3339, section 5.6, with the days of each month and of leap years. No year 0, no leap second.
#define HARK_YEAR "(?:[1-9]\\d{3}|0[1-9]\\d{2}|00[1-9]\\d|000[1-9])"
#define HARK_LEAP_YEAR                                                                             \
    "(?:(?:[1-9]\\d|0[1-9])(?:0[48]|[2468][048]|[13579][26])|00(?:0[48]|[2468][048]|[13579][26])|" \
    "(?:0[48]|[2468][048]|[13579][26])00)"
#define HARK_DATE                                      \
    "(?:" HARK_YEAR                                    \
    "-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\\d|3[01])|" \
    "(?:0[469]|11)-(?:0[1-9]|[12]\\d|30)|02-(?:0[1-9]|1\\d|2[0-8]))|" HARK_LEAP_YEAR "-02-29)"
#define HARK_CLOCK "(?:[01]\\d|2[0-3]):[0-5]\\d"
#define HARK_TIME HARK_CLOCK ":[0-5]\\d(?:\\.\\d{1,6})?(?:Z|[+-]" HARK_CLOCK ")"
// RFC 1123: labels of 63 characters at most; here two labels at most after the first one. None has
// "--" as its third and fourth character: such labels encode others (RFC 5891, section 4.2.3.1).
#define HARK_LETTER "[A-Za-z0-9]"
#define HARK_HYPHEN "[A-Za-z0-9-]"
#define HARK_LABEL                                                             \
    HARK_LETTER "(?:" HARK_HYPHEN "{0,2}" HARK_LETTER "|" HARK_HYPHEN          \
                "(?:" HARK_LETTER HARK_HYPHEN "|-" HARK_LETTER ")" HARK_HYPHEN \
                "{0,58}" HARK_LETTER ")?"
#define HARK_BYTE "(?:25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)"
#define HARK_GROUP "[0-9A-Fa-f]{1,4}"
#define HARK_URI_CHAR "(?:[A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2})"

constexpr std::array<std::pair<const char*, const char*>, 14> kFormats = {{
    {"date", HARK_DATE},
    {"time", HARK_TIME},
    {"date-time", HARK_DATE "T" HARK_TIME},
    // ISO 8601, RFC 3339's appendix A.
    {"duration",
     "P(?:\\d{1,4}W|(?:\\d{1,4}Y(?:\\d{1,4}M(?:\\d{1,4}D)?)?|\\d{1,4}M(?:\\d{1,4}D)?|\\d{1,4}D)"
     "(?:T(?:\\d{1,4}H(?:\\d{1,4}M(?:\\d{1,4}S)?)?|\\d{1,4}M(?:\\d{1,4}S)?|\\d{1,4}S))?|"
     "T(?:\\d{1,4}H(?:\\d{1,4}M(?:\\d{1,4}S)?)?|\\d{1,4}M(?:\\d{1,4}S)?|\\d{1,4}S))"},
    {"uuid", "[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"},
    // RFC 5321's Dot-string of 64 characters at most.
    {"email",
     "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]{1,31}(?:\\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]{1,31})?@" HARK_LABEL
     "(?:\\." HARK_LABEL "){1,2}"},
    {"hostname", HARK_LABEL "(?:\\." HARK_LABEL "){0,2}"},
    {"ipv4", HARK_BYTE "(?:\\." HARK_BYTE "){3}"},
    // RFC 4291: eight groups, or "::" in place of some, in the middle of the address.
    {"ipv6", "(?:" HARK_GROUP ":){7}" HARK_GROUP "|::(?:(?:" HARK_GROUP ":){0,6}" HARK_GROUP ")?|"
             "(?:" HARK_GROUP ":){1,6}:(?:" HARK_GROUP ")?"},
    {"uri", "[A-Za-z][A-Za-z0-9+.-]{0,15}://" HARK_LABEL "(?:\\." HARK_LABEL "){0,2}(?::\\d{1,5})?"
            "(?:/" HARK_URI_CHAR "*)*(?:\\?(?:" HARK_URI_CHAR "|[/?])*)?(?:#(?:" HARK_URI_CHAR
            "|[/?])*)?"},
    // A path: after "//" there would be a host.
    {"uri-reference", "/(?:" HARK_URI_CHAR "+(?:/" HARK_URI_CHAR "*)*)?(?:\\?(?:" HARK_URI_CHAR
                      "|[/?])*)?(?:#(?:" HARK_URI_CHAR "|[/?])*)?"},
    // RFC 6901.
    {"json-pointer", "(?:/(?:[^/~]|~[01])*)*"},
    // Plain texts: schemas of OpenAPI have these.
    {"password", "[\\s\\S]*"},
    {"byte", "(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?"},
}};

constexpr std::array kNumberFormats = {"int32", "int64", "float", "double"};

}  // namespace

CharAutomaton format_texts(const std::string& name) {
    for (const auto& [format, pattern] : kFormats)
        if (name == format) return whole_match(pattern);
    fail("the format ", name, " is not supported (expected one of ",
         joined(kFormats, ", ", [](const auto& one) { return std::string_view(one.first); }), ")");
}

bool is_number_format(const std::string& name) { return contains(kNumberFormats, name); }

}  // namespace hark
