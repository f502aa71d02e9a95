"""Random Jinja expressions from a grammar of what chat templates use; jinja_grammar.py puts them in templates."""

import random

TEXTS = [
    "'a'",
    "'Hello, World'",
    '"it\'s"',
    "'  pad\\t'",
    "''",
    "'x' 'y'",
    "'tab\\tnew\\nline'",
    "'Größe ß ΑΣ'",
    "'<b>&\"q\"</b>'",
    "'one two  three'",
    "'a,b,,c'",
    "'42'",
    "'3.5e2'",
    "'line1\\nline2\\n\\nline4'",
    "'\\u00e9\\x41\\q'",
    "'😀 ok'",
    "'ǆ ﬁn'",
]
NAMES_TEXT = [
    "s",
    "u",
    "bos_token",
    "messages[0].content",
    "messages[1]['content']",
    "messages[-1].content",
    "d.name",
    "d['k']",
]
NAMES_LIST = ["l", "nums", "words", "messages", "d.tags", "tools", "e"]
NAMES_DICT = ["d", "messages[0]", "tools[0].function", "nested", "nested.inner"]
NAMES_INT = ["n", "z", "neg", "d.count", "l|length"]
NAMES_ANY = ["missing", "none", "f", "b", "true", "false", "d.absent", "d['absent']", "nested.inner.deep", "none_value"]


class Expressions:
    def __init__(self, seed):
        self.r = random.Random(seed)
        self.names = 0
        self.loop = 0

    def pick(self, *choices):
        return self.r.choice(choices)

    # Expressions. Most are of the type that is asked for; some are not, so that errors are covered.
    def any(self, depth):
        return self.pick(self.text, self.text, self.integer, self.real, self.list, self.dict, self.boolean, self.other)(
            depth
        )

    def other(self, depth):
        if depth <= 0 or self.r.random() < 0.5:
            return self.r.choice(NAMES_ANY)
        a, b = self.any(depth - 1), self.any(depth - 1)
        return self.pick(
            f"({a} if {self.boolean(depth - 1)} else {b})",
            f"({a} if {self.boolean(depth - 1)})",
            f"({a} or {b})",
            f"({a} and {b})",
            f"{self.list(depth - 1)}|first",
            f"{self.list(depth - 1)}[{self.integer(0)}]",
            f"{self.dict(depth - 1)}.get({self.text(0)})",
            f"{self.dict(depth - 1)}.get('k', {b})",
            f"({a})|default({b})",
            f"({a})|default({b}, true)",
            f"({a})|d({b}, boolean=true)",
            f"{self.list(depth - 1)}|last",
            f"{self.list(depth - 1)}|max",
            f"{self.list(depth - 1)}|min",
            f"({a})['items']",
            f"d.{self.pick('items', 'name', 'k', 'get')}",
            f"namespace(a={a}).a",
            f"{self.dict(depth - 1)}[{self.text(0)}]",
            f"({a}).x",
            f"({a})|attr('name')",
            f"{{'q': {a}}}.q",
            f"dict(a={a}, b={b})['b']",
            f"({a}, {b})[{self.pick('0', '1', '-1', '2')}]",
        )

    def text(self, depth):
        if depth <= 0:
            return self.r.choice(TEXTS) if self.r.random() < 0.5 else self.r.choice(NAMES_TEXT)
        t, v = self.text(depth - 1), self.any(depth - 1)
        u, i = self.text(0), self.integer(0)
        return self.pick(
            t,
            f"({t} + {u})",
            f"({t} ~ {v})",
            f"({t} ~ {v} ~ {u})",
            f"({t} * {self.pick('2', '0', '3')})",
            f"{t}[{i}:]",
            f"{t}[:{i}]",
            f"{t}[::-1]",
            f"{t}[{i}:{self.integer(0)}:{self.pick('1', '2', '-1', '-2')}]",
            f"{t}[{i}]",
            f"{t}|trim",
            f"{t}|upper",
            f"{t}|lower",
            f"{t}|capitalize",
            f"{t}|title",
            f"{t}|replace({u}, {self.text(0)})",
            f"{t}|replace('l', 'L', 1)",
            f"({v})|string",
            f"({v})|tojson",
            f"({v})|tojson(indent={self.pick('2', '4', '0', 'none')})",
            f"({v})|tojson(ensure_ascii={self.pick('true', 'false')})",
            f"({v})|tojson(separators=(',', ':'), sort_keys={self.pick('true', 'false')})",
            f"{self.list(depth - 1)}|join({self.pick('', u)})",
            f"{self.list(depth - 1)}|join(', ', attribute='role')",
            f"{t}|indent({self.pick('2', '4', '2, true', '2, true, true', chr(39) + '> ' + chr(39))})",
            f"{t}.strip({self.pick('', u)})",
            f"{t}.lstrip({self.pick('', u)})",
            f"{t}.rstrip({self.pick('', u)})",
            f"{t}.upper()",
            f"{t}.lower()",
            f"{t}.title()",
            f"{t}.capitalize()",
            f"{t}.replace({u}, {self.text(0)})",
            f"{t}.replace('a', 'o', {i})",
            f"{t}.split({u})[{self.pick('0', '-1')}]",
            f"{t}.split()|join('|')",
            f"{u}.join({self.list(depth - 1)})",
            f"{t}|e",
            f"({t}|safe) + {u}",
            f"{t}|truncate({self.pick('5', '8, true', '9, false, chr')})",
            f"{t}|center({self.pick('9', '20')})",
            f"'%s-%s' % ({v}, {u})",
            f"'%5.2f|%03d|%-4s|' % ({self.real(0)}, {i}, {u})",
            f"'%s' % {t}",
            f"'{{}} {{}}'.format({v}, {u})",
            f"'{{0!r:>8}} {{x:.2f}} {{1:*^9}}'.format({u}, {t}, x={self.real(0)})",
            f"{t}|format({v})",
            f"({v})|string|reverse",
            f"{t}.removeprefix({u})",
            f"{t}.removesuffix({u})",
            f"{t}.partition({u})[{self.pick('0', '1', '2')}]",
            f"{t}.rpartition({u})[2]",
            f"{t}.rsplit({u}, 1)[0]",
            f"{t}.zfill(7)",
            f"{t}.rjust(7, '.')",
            f"{t}|urlencode",
            f"({t}|first)",
            f"({t}|last)",
            f"{t}.swapcase()",
            f"{t}.splitlines()|join('/')",
            f"{t}.rsplit(none, 1)|last",
            f"{t}.split(maxsplit=1)|string",
            f"strftime_now({self.pick(chr(39) + '%d %b %Y' + chr(39), chr(39) + '%Y-%m-%d' + chr(39))})",
            f"(loop.index|string)" if self.loop else t,
            f"{t}.ljust({i})|replace(' ', '_')",
            f"'{{:,}} {{:+d}} {{:x}}'.format({i}, {i}, {self.pick('255', '3')})",
        )

    def integer(self, depth):
        if depth <= 0:
            return self.pick(self.pick("0", "1", "2", "-1", "-3", "7", "1_000", "0x1F"), self.r.choice(NAMES_INT))
        a, b = self.integer(depth - 1), self.integer(0)
        return self.pick(
            a,
            f"({a} + {b})",
            f"({a} - {b})",
            f"({a} * {b})",
            f"({a} // {b})",
            f"({a} % {b})",
            f"{a} ** 2",
            f"(-{b})**2",
            f"-{a}",
            f"{self.list(depth - 1)}|length",
            f"{self.text(depth - 1)}|length",
            f"{self.text(depth - 1)}|int",
            f"{self.text(0)}|int(default={b})",
            f"{a}|abs",
            f"nums|sum",
            f"messages|map(attribute='content')|map('length')|sum",
            f"{self.text(depth - 1)}.find({self.text(0)})",
            f"{self.text(depth - 1)}.count({self.text(0)})",
            f"{self.list(depth - 1)}|count",
            f"{self.real(depth - 1)}|int",
            f"{self.text(0)}.rfind('o')",
            f"{self.text(0)}|wordcount",
            f"{self.list(depth - 1)}.index({b})",
            f"loop.index0" if self.loop else b,
            f"loop.revindex" if self.loop else b,
            "'0x1A'|int(base=16)",
            f"{self.dict(depth - 1)}|length",
        )

    def real(self, depth):
        if depth <= 0:
            return self.pick("0.5", "f", "1e3", "2.0", "-0.0", "1.5e-7", "123456789.125", "3.14159", "0.1")
        a = self.real(depth - 1)
        return self.pick(
            a,
            f"({self.integer(depth - 1)} / {self.integer(0)})",
            f"({a} + {self.integer(0)})",
            f"({a} * {self.real(0)})",
            f"{a}|round({self.pick('', '1', '2')})",
            f"{a}|round(1, 'floor')",
            f"{a}|round(method='ceil')",
            f"{self.text(0)}|float",
            f"({a} // {self.real(0)})",
            f"({a} % {self.real(0)})",
            f"{a}|abs",
            f"2 ** -1",
        )

    def list(self, depth):
        if depth <= 0:
            return (
                self.r.choice(NAMES_LIST)
                if self.r.random() < 0.7
                else self.pick("[1, 2, 3]", "['b', 'a', 'C']", "[]", "(1, 'x')", "range(4)", "range(5, 0, -2)")
            )
        a, v = self.list(depth - 1), self.any(depth - 1)
        return self.pick(
            a,
            f"[{v}, {self.any(0)}]",
            f"({a} + [{v}])",
            f"({a} * 2)",
            f"{a}[1:]",
            f"{a}[:-1]",
            f"{a}[::-1]",
            f"{a}[{self.integer(0)}:{self.integer(0)}]",
            f"{a}|list",
            f"{a}|reverse|list",
            f"{a}|sort",
            f"{a}|sort(reverse=true)",
            f"{a}|sort(attribute='role')",
            f"{a}|unique|list",
            f"{a}|map('upper')|list",
            f"{a}|map('string')|list",
            f"{a}|map(attribute='role')|list",
            f"{a}|map(attribute='x', default='-')|list",
            f"{a}|select('string')|list",
            f"{a}|reject('none')|list",
            f"{a}|select|list",
            f"{a}|reject('odd')|list",
            f"{a}|selectattr('role', 'equalto', 'user')|list",
            f"{a}|selectattr('role', 'in', ['user', 'tool'])|list",
            f"{a}|rejectattr('role', '==', 'system')|list",
            f"{a}|selectattr('content', 'defined')|list",
            f"{a}|selectattr('content')|list",
            f"{self.dict(depth - 1)}.items()|list",
            f"{self.dict(depth - 1)}.keys()|list",
            f"{self.dict(depth - 1)}.values()|list",
            f"{self.dict(depth - 1)}|items|list",
            f"{self.dict(depth - 1)}|dictsort",
            f"{self.dict(depth - 1)}|dictsort(by='value')",
            f"{self.dict(depth - 1)}|list",
            f"{self.text(depth - 1)}.split({self.pick('', self.text(0))})",
            f"{self.text(depth - 1)}.split(',', 1)",
            f"{self.text(depth - 1)}|list",
            f"{a}|batch(2)|list",
            f"{a}|batch(2, '-')|list",
            f"{a}|slice(2)|list",
            f"{a}|groupby('role')|map('first')|list",
            f"({v}, {self.any(0)})",
            f"{self.text(0)}.splitlines({self.pick('', 'true')})",
            f"{a}|map('tojson')|list",
            f"{a}|map('length')|list",
            f"{self.dict(depth - 1)}.items()",
            f"{self.text(0)}.partition('l')",
        )

    def dict(self, depth):
        if depth <= 0:
            return self.r.choice(NAMES_DICT)
        v = self.any(depth - 1)
        return self.pick(
            self.dict(depth - 1),
            f"{{'a': {v}, 'b': {self.any(0)}}}",
            f"{{{self.text(0)}: {v}}}",
            "{}",
            f"{{1: {v}, 1.0: 'x', true: 2}}",
            f"dict(a={v})",
            f"dict({self.dict(0)}, extra={v})",
            f"{self.list(0)}[0]",
            f"{{(1, 2): {v}, none: 3}}",
            f"{self.dict(depth - 1)}.copy()",
        )

    def boolean(self, depth):
        if depth <= 0:
            return self.pick(
                "true",
                "false",
                "b",
                "n > 1",
                "s",
                "missing",
                "loop.first" if self.loop else "l",
                "loop.last" if self.loop else "e",
            )
        v, w, t = self.any(depth - 1), self.any(0), self.text(depth - 1)
        test = self.pick(
            "defined",
            "undefined",
            "none",
            "not none",
            "string",
            "number",
            "integer",
            "float",
            "boolean",
            "true",
            "false",
            "mapping",
            "sequence",
            "iterable",
            "callable",
            "odd",
            "even",
            "divisibleby 2",
            "divisibleby(3)",
            "eq 2",
            "equalto 'a'",
            "ne none",
            "in [1, 'a']",
            "lower",
            "upper",
            "sameas true",
            "gt 1",
            "not defined",
            "ge(0)",
            "lt 5",
            "not string",
            "escaped",
        )
        return self.pick(
            f"{v} is {test}",
            f"{v} is {test}",
            f"({v} == {w})",
            f"({v} != {w})",
            f"({self.integer(depth - 1)} {self.pick('<', '<=', '>', '>=')} {self.integer(0)})",
            f"({v} in {self.list(depth - 1)})",
            f"({v} not in {self.list(depth - 1)})",
            f"({t} in {self.text(0)})",
            f"({t} in {self.dict(0)})",
            f"not {self.boolean(depth - 1)}",
            f"({self.boolean(depth - 1)} and {self.boolean(depth - 1)})",
            f"({self.boolean(depth - 1)} or {self.boolean(depth - 1)})",
            f"{t}.startswith({self.text(0)})",
            f"{t}.endswith({self.text(0)})",
            f"(1 < {self.integer(0)} <= 7)",
            f"({t} < {self.text(0)})",
            f"{t}.startswith(('a', 'H'))",
            f"{t}.isdigit()",
            f"{t}.isalpha()",
            f"{t}.isspace()",
            f"{t}.isupper()",
            f"({self.list(depth - 1)} == {self.list(0)})",
            f"'role' in messages[0]",
            f"{t}.islower()",
            f"{t}.istitle()",
            f"({self.dict(depth - 1)} == {self.dict(0)})",
            f"({self.list(depth - 1)} < {self.list(0)})",
            f"{t}.isalnum()",
        )
