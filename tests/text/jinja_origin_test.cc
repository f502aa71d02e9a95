// Each byte of a rendered text knows whether it comes from the template or from outside: through
// every operator, slice, filter and method.
#include <gtest/gtest.h>

#include "core/error.h"
#include "text/jinja/template.h"

using namespace hark;

namespace {

// The output, with what comes from outside in brackets. x is " aB, cD "; l is ["p", "q"];
// d is {"k": "v"}; t is a token of the template's own.
std::string marked(const std::string& source) {
    const std::vector<jinja::Variable> variables = {
        {"x", " aB, cD "}, {"l", {"p", "q"}}, {"d", {{"k", "v"}}}, {"t", "<s>", false}};
    std::string text;
    for (const jinja::Piece& piece : jinja::Template(source, "t").render(variables, {}))
        text += piece.from_input ? "[" + piece.text + "]" : piece.text;
    return text;
}

using Case = std::pair<const char*, const char*>;

void expect_marked(std::initializer_list<Case> cases) {
    for (const auto& [source, expected] : cases) EXPECT_EQ(marked(source), expected) << source;
}

}  // namespace

TEST(JinjaOrigin, Operators) {
    expect_marked(
        {{"a{{ x }}b{{ t }}", "a[ aB, cD ]b<s>"},
         {"{{ 'a' + x + 'b' }}", "a[ aB, cD ]b"},
         {"{{ 'a' ~ x ~ 1 }}", "a[ aB, cD ]1"},
         {"{{ ('-' ~ l[0]) * 2 }}", "-[p]-[p]"},
         {"{{ x[1:3] }}{{ x[-2] }}{{ x[::-1] }}", "[aBD Dc ,Ba ]"},
         {"{{ '<%s|%4s|%r>' % (l[0], l[1], d) }}", "<[p]|   [q]|{'[k]': '[v]'}>"},
         {"{{ l }}{{ d }}{{ (x,) }}", "['[p]', '[q]']{'[k]': '[v]'}('[ aB, cD ]',)"},
         {"{{ x if true else t }}{{ x or t }}{{ t and l[0] }}", "[ aB, cD  aB, cD p]"},
         {"{% set y = t ~ l[0] %}{{ y }}{% set z %}<{{ y }}>{% endset %}{{ z }}", "<s>[p]<<s>[p]>"},
         {"{% macro m(a, b='!') %}({{ a }}{{ b }}){% endmacro %}{{ m(l[0]) }}", "([p]!)"},
         {"{% for c in l[0] ~ '-' %}{{ c }}{% endfor %}", "[p]-"},
         {"{{ '\\x00'|tojson }}{{ (l[0] ~ '\"')|tojson }}", "\"\\u0000\"\"[p]\\\"\""}});
}

TEST(JinjaOrigin, Filters) {
    expect_marked(
        {{"{{ (x ~ 'Z')|upper }}{{ (x ~ 'Z')|lower }}", "[ AB, CD ]Z[ ab, cd ]z"},
         {"{{ ('z' ~ l[0])|capitalize }}{{ ('z ' ~ l[0])|title }}", "Z[p]Z [P]"},
         {"{{ (x ~ ' ')|trim }}{{ x|trim(' a') }}", "[aB, cDB, cD]"},
         {"{{ x|replace('a', '<') }}{{ 'ab'|replace('a', l[0]) }}", "[ ]<[B, cD p]b"},
         {"{{ l|join('|') }}{{ ['a', 'b']|join(l[0]) }}", "[p]|[q]a[p]b"},
         {"{{ l|tojson }}{{ d|tojson(indent=1) }}", "[\"[p]\", \"[q]\"]{\n \"[k]\": \"[v]\"\n}"},
         {"{{ ('a\n' ~ l[0])|indent(2, true) }}", "  a\n  [p]"},
         {"{{ x|truncate(5, true, '~', 0) }}{{ l[0]|center(3) }}", "[ aB,]~ [p] "},
         {"{{ '%s'|format(l[0]) }}{{ l[0]|string }}{{ l[0]|safe }}{{ l[0]|default('') }}",
          "[pppp]"},
         {"{{ (l[0] ~ '<')|e }}{{ '<'|e }}{{ l|first }}{{ l|last }}", "[p]&lt;&lt;[pq]"},
         {"{{ l|reverse|list }}{{ l|sort(reverse=true) }}", "['[q]', '[p]']['[q]', '[p]']"},
         {"{{ l|map('upper')|join }}{{ l|select('eq', 'p')|join }}{{ l|unique|join }}", "[PQppq]"},
         {"{{ l|batch(1)|list }}{{ l|slice(2)|list }}", "[['[p]'], ['[q]']][['[p]'], ['[q]']]"},
         {"{{ d|items|list }}{{ d|dictsort }}{{ [d]|map(attribute='k')|join }}",
          "[('[k]', '[v]')][('[k]', '[v]')][v]"},
         {"{{ l|min }}{{ l|max }}{{ [d]|groupby('k') }}{{ (l[0] ~ ' ')|urlencode }}",
          "[pq][('[v]', [{'[k]': '[v]'}])][p]%20"},
         {"{% filter upper %}a{{ l[0] }}{% endfilter %}", "A[P]"}});
}

TEST(JinjaOrigin, Methods) {
    expect_marked(
        {{"{{ x.strip() }}{{ x.lstrip() }}{{ x.rstrip(' D') }}", "[aB, cDaB, cD  aB, c]"},
         {"{{ (x ~ '|').split(',') }}{{ x.split() }}{{ x.rsplit(',', 1)[0] }}",
          "['[ aB]', '[ cD ]|']['[aB,]', '[cD]'][ aB]"},
         {"{{ 'a-b'.replace('-', l[0]) }}{{ x.replace(' ', '_') }}", "a[p]b_[aB,]_[cD]_"},
         {"{{ '-'.join(l) }}{{ l[0].join(['a', 'b']) }}", "[p]-[q]a[p]b"},
         {"{{ (l[0] ~ 'z').upper() }}{{ ('Z' ~ l[0]).lower() }}", "[P]Zz[p]"},
         {"{{ ('z' ~ l[0]).title() }}{{ (l[0] ~ 'Z').capitalize() }}{{ l[0].swapcase() }}",
          "Z[pP]z[P]"},
         {"{{ x.partition(',') }}", "('[ aB]', ',', '[ cD ]')"},
         {"{{ ('a\n' ~ l[0]).splitlines() }}", "['a', '[p]']"},
         {"{{ '{}<{!r}{:>3}'.format(l[0], l[1], l[0]) }}", "[p]<'[q]'  [p]"},
         {"{{ l[0].zfill(3) }}{{ l[0].ljust(3, '.') }}{{ l[0].rjust(2) }}{{ l[0].center(3) }}",
          "00[pp].. [p] [p] "},
         {"{{ x.removeprefix(' a') }}{{ x.removesuffix('D ') }}", "[B, cD  aB, c]"},
         {"{{ d.get('k') }}{{ d.items()|list }}{{ d.keys()|list }}{{ d.values()|list }}",
          "[v][('[k]', '[v]')]['[k]']['[v]']"},
         {"{{ d.get('z', '-') }}{{ d.copy() }}", "-{'[k]': '[v]'}"}});
}
