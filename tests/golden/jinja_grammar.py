"""Random Jinja templates from a grammar of what chat templates use; jinja.py renders them."""

from jinja_expressions import Expressions


class Grammar(Expressions):
    def tag(self, inside):
        return "{%" + self.pick("", "", "-", "+") + " " + inside + " " + self.pick("", "", "-", "+") + "%}"

    def output(self, inside):
        return "{{" + self.pick("", "", "-") + " " + inside + " " + self.pick("", "", "-") + "}}"

    def data(self):
        return self.r.choice(
            [
                "text",
                " ",
                "\n",
                "\n  ",
                "  \n",
                "a\n\nb",
                "  indented ",
                "<|x|>",
                "\t",
                "{ not }",
                "end.\n",
                "é\n",
                "",
                "# no",
                "%}\n" if self.r.random() < 0.1 else "-",
                "\r\n",
                " \u00a0\n ",
            ]
        )

    def name(self):
        self.names += 1
        return f"v{self.names}"

    def body(self, depth):
        return "".join(self.statement(depth) + self.data() for _ in range(self.r.randint(1, 3)))

    def looped(self, depth):
        self.loop += 1
        body = self.body(depth)
        self.loop -= 1
        return body

    def statement(self, depth):
        if depth <= 0:
            return self.pick(self.output(self.any(2)), self.output(self.text(2)), self.data())
        kind = self.r.randrange(22)
        if kind < 4:
            return self.output(self.any(3))
        if kind < 6:
            return (
                self.tag("if " + self.boolean(2))
                + self.body(depth - 1)
                + self.pick(
                    "",
                    self.tag("else") + self.body(depth - 1),
                    self.tag("elif " + self.boolean(1)) + self.body(depth - 1),
                )
                + self.tag("endif")
            )
        if kind < 10:
            return self.for_loop(depth)
        if kind == 10:
            return self.tag(f"set {self.pick('s', 'n', 'w')} = {self.any(2)}") + self.pick(
                "", self.output("s"), self.output("w")
            )
        if kind == 11:
            return (
                self.tag("set w" + self.pick("", " | upper", " | trim | length"))
                + self.body(depth - 1)
                + self.tag("endset")
                + self.output("w")
            )
        if kind == 12:
            ns = self.name()
            return (
                self.tag(f"set {ns} = namespace(c=0, t='')")
                + self.tag(f"for i in {self.list(1)}")
                + self.tag(f"set {ns}.c = {ns}.c + 1")
                + self.tag(f"set {ns}.t = {ns}.t ~ i")
                + self.tag("endfor")
                + self.output(f"{ns}.c ~ {ns}.t")
            )
        if kind < 15:
            return self.macro(depth)
        if kind == 15:
            return (
                self.tag("filter " + self.pick("upper", "trim", "replace('a', 'b')", "indent(2)|upper"))
                + self.body(depth - 1)
                + self.tag("endfilter")
            )
        if kind == 16:
            return "{#" + self.pick("", "-", "+") + " note {{ x }} " + self.pick("", "-", "+") + "#}"
        if kind == 17:
            return self.tag("raw").replace("+", "") + " {{ raw }} {% if %} \n " + self.tag("endraw")
        if kind == 18:
            return (
                self.tag(f"with a = {self.any(1)}, s = {self.text(1)}")
                + self.output("a")
                + self.body(depth - 1)
                + self.tag("endwith")
            )
        if kind == 19:
            return self.tag("generation") + self.body(depth - 1) + self.tag("endgeneration")
        if kind == 20:
            return self.tag(f"set a, c = {self.any(0)}, {self.any(1)}") + self.output("a ~ c")
        if self.loop and self.r.random() < 0.5:
            return self.tag("if " + self.boolean(1)) + self.tag(self.pick("break", "continue")) + self.tag("endif")
        return (
            self.output("namespace(a=1)")
            if self.r.random() < 0.2
            else self.output("loop.index ~ loop.length ~ loop.previtem ~ loop.nextitem" if self.loop else "s")
        )

    def for_loop(self, depth):
        condition = self.pick(
            "", "", f" if {self.pick('i', 'i is string', 'loop is defined', 'i is mapping and i.role')}"
        )
        head, inner = self.pick(
            (f"for i in {self.list(2)}{condition}", "i"),
            (f"for k, v in {self.dict(1)}.items()", "k ~ v"),
            (f"for i in {self.list(1)}", "loop.index ~ i ~ loop.last"),
            (f"for k, v in {self.dict(1)}|dictsort", "k"),
            (f"for i in {self.list(1)}", "loop.cycle('a', 'b') ~ loop.changed(i)"),
            (f"for i in range({self.pick('3', 'n', '1, 6, 2')})", "loop.revindex0 ~ loop.depth"),
        )
        return (
            self.tag(head)
            + self.output(inner)
            + self.looped(depth - 1)
            + self.pick("", "", self.tag("else") + "none\n")
            + self.tag("endfor")
        )

    def macro(self, depth):
        name = self.name()
        saved, self.loop = self.loop, 0
        body = self.body(depth - 1)
        self.loop = saved
        special = self.pick("", "", "", "varargs", "kwargs", "caller()")
        head = self.pick("p", "p, q='d'", "p, q=p, r=none", "")
        used = self.output(self.pick("p", "p ~ q", "p ~ r", "varargs", special or "p"))
        call = f"{name}({self.pick('', self.any(1), self.any(1) + ', ' + self.any(0), 'q=' + self.any(0), self.text(0) + ', r=' + self.any(0), '*[1, 2]', '**' + chr(123) + chr(39) + 'p' + chr(39) + ': 1' + chr(125))})"
        use = self.output(call)
        if special == "caller()":
            use = (
                self.tag(self.pick(f"call {call}", f"call(x) {call}"))
                + self.data()
                + self.output("s")
                + self.tag("endcall")
            )
        return (
            self.tag(f"macro {name}({head})")
            + used
            + self.output(special) * bool(special)
            + body
            + self.tag("endmacro")
            + use
        )

    def template(self):
        return self.data() + "".join(self.statement(2) + self.data() for _ in range(self.r.randint(1, 3)))
