// Templates come from outside: what is wrong has a message with its line, and what never ends or
// takes too much is an error.
#include <gtest/gtest.h>

#include "core/error.h"
#include "text/jinja/template.h"

using namespace hark;

namespace {

std::string repeated(const std::string& text, int times) {
    std::string all;
    for (int i = 0; i < times; ++i) all += text;
    return all;
}

std::string error_of_source(const std::string& source) {
    try {
        jinja::Template(source, "T").render({{"x", "text"}, {"l", {1, 2}}}, {});
    } catch (const Error& error) {
        return error.what();
    }
    return "no error";
}

}  // namespace

TEST(JinjaLimits, ErrorsNameTheLine) {
    EXPECT_EQ(error_of_source("\n\n{{ raise_exception('no ' ~ x) }}"), "T: line 3: no text");
    EXPECT_EQ(error_of_source("a\n{{ missing.x }}"), "T: line 2: 'missing' is undefined");
    EXPECT_EQ(error_of_source("a\n{{ x.y.z }}"), "T: line 2: 'str object' has no attribute 'y'");
    EXPECT_EQ(error_of_source("\n{% if x %}\n{{ x + 1 }}{% endif %}"),
              "T: line 3: can only concatenate str (not \"int\") to str");
    EXPECT_EQ(error_of_source("{% for a in l %}"),
              "T: line 1: the template ends, expected {% endfor %}");
    EXPECT_EQ(error_of_source("\n{{ x | nope }}"), "T: line 2: no filter named 'nope'");
    EXPECT_EQ(error_of_source("{{ x is nope }}"), "T: line 1: no test named 'nope'");
    EXPECT_EQ(error_of_source("{{ 'a }}"), "T: line 1: unexpected char '''");
    EXPECT_EQ(error_of_source("{{ (1] }}"), "T: line 1: unexpected ']', expected ')'");
    EXPECT_EQ(error_of_source("{% include 'a' %}"),
              "T: line 1: {% include %} is not supported in a chat template");
    EXPECT_EQ(error_of_source("{{ l.append(3) }}"),
              "T: line 1: access to attribute 'append' of 'list' object is unsafe.");
    EXPECT_EQ(error_of_source("\xFF"), "T: the template is not valid UTF-8");
}

TEST(JinjaLimits, Time) {
    const std::string steps = "takes more than 1000000 steps";
    EXPECT_NE(error_of_source(
                  "{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}")
                  .find(steps),
              std::string::npos);
    EXPECT_NE(error_of_source(
                  "{% set n = namespace(l=[1]) %}{% for a in range(99) %}{% set n.l = n.l + n.l "
                  "%}{% endfor %}")
                  .find(steps),
              std::string::npos);
    // Lists that hold the same list twice: 2^90 items to print and to compare.
    const std::string doubled =
        "{% set n = namespace(l=[1], m=[1]) %}{% for a in range(90) %}{% set n.l "
        "= [n.l, n.l] %}{% set n.m = [n.m, n.m] %}{% endfor %}";
    for (const char* use : {"{{ n.l }}", "{{ n.l|tojson }}", "{{ n.l == n.m }}", "{{ n.l < n.m }}"})
        EXPECT_NE(error_of_source(doubled + use).find(steps), std::string::npos) << use;
}

TEST(JinjaLimits, Memory) {
    const std::string bytes = "a text is longer than 16777216 bytes";
    EXPECT_NE(error_of_source("{{ 'abc' * 9999999 }}").find(bytes), std::string::npos);
    EXPECT_NE(error_of_source(
                  "{% set n = namespace(s='ab') %}{% for a in range(99) %}{% set n.s = n.s ~ n.s "
                  "%}{% endfor %}")
                  .find(bytes),
              std::string::npos);
    EXPECT_NE(error_of_source("{{ '%999999999d' % 1 }}").find("too large"), std::string::npos);
    EXPECT_NE(error_of_source("{{ '{:999999999}'.format(1) }}").find("too large"),
              std::string::npos);
    EXPECT_NE(error_of_source(
                  "{% set s = 'abcdefgh' * 1000000 %}{% set n = namespace(l=[]) %}{% for a in "
                  "range(99) %}{% set n.l = n.l + [s ~ a] %}{% endfor %}")
                  .find("texts take more than"),
              std::string::npos);
    EXPECT_NE(error_of_source(std::string(jinja::kMaxTemplateBytes + 1, 'a')).find("at most"),
              std::string::npos);
}

TEST(JinjaLimits, Depth) {
    EXPECT_NE(
        error_of_source("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}").find("nested deeper"),
        std::string::npos);
    EXPECT_NE(error_of_source("{% for a in [1] recursive %}{{ loop([1]) }}{% endfor %}")
                  .find("nested deeper"),
              std::string::npos);
    for (const auto& [open, close] : std::initializer_list<std::pair<const char*, const char*>>{
             {"(", ")"}, {"[", "]"}, {"{1:", "}"}, {"-", ""}, {"not ", ""}, {"x.a(", ")"}})
        EXPECT_NE(
            error_of_source("{{ " + repeated(open, 5000) + "1" + repeated(close, 5000) + " }}")
                .find("nested deeper"),
            std::string::npos)
            << open;
    EXPECT_NE(error_of_source("{{ 1" + repeated("+1", 5000) + " }}").find("nested deeper"),
              std::string::npos);
    EXPECT_NE(error_of_source("{{ x" + repeated("|trim", 5000) + " }}").find("nested deeper"),
              std::string::npos);
    EXPECT_NE(error_of_source("{{ x" + repeated(".a", 5000) + " }}").find("nested deeper"),
              std::string::npos);
    EXPECT_NE(error_of_source(repeated("{% if x %}", 5000)).find("nested deeper"),
              std::string::npos);
    EXPECT_EQ(error_of_source("{% if x %}{% " + repeated("elif x %}{% ", 5000) + "endif %}"),
              "no error");
    // Values and generators inside one another.
    for (const char* nest : {"[n.l]", "{1: n.l}", "(n.l,)", "[n.l]|map('string')", "cycler(n.l)",
                             "[n.l].index", "{1: n.l}.items()"})
        EXPECT_NE(
            error_of_source(
                std::string("{% set n = namespace(l=1) %}{% for a in range(999) %}{% set n.l = ") +
                nest + " %}{% endfor %}")
                .find("nested deeper"),
            std::string::npos)
            << nest;
}

TEST(JinjaLimits, ValuesThatHoldThemselves) {
    EXPECT_NE(
        error_of_source("{% set n = namespace() %}{% set n.n = n %}{{ n }}").find("holds itself"),
        std::string::npos);
    EXPECT_EQ(error_of_source("{% set n = namespace() %}{% set n.n = [n] %}{{ n.n == n.n }}"),
              "no error");
    EXPECT_EQ(error_of_source("{% set n = namespace() %}{% for a in l %}{% set n.l = loop %}{{ "
                              "loop.changed(loop) }}{% endfor %}{{ n.l.index }}"),
              "no error");
    EXPECT_EQ(error_of_source(
                  "{% set n = namespace() %}{% for a in l %}{% macro m() %}{{ a }}{% endmacro %}{% "
                  "set n.m = m %}{% set n.c = loop.cycle %}{% endfor %}{{ n.m() }}"),
              "no error");
    EXPECT_NE(error_of_source(
                  "{% set n = namespace() %}{% for a in l %}{% set n.c = loop.cycle %}{% endfor %}"
                  "{{ n.c(1) }}")
                  .find("the loop has ended"),
              std::string::npos);
}
