// Statements: jinja2 3.1.6, parser.py, and transformers' tag generation.
#include "core/error.h"
#include "text/jinja/parser.h"

namespace hark::jinja {
namespace {

// Sets a number while a scope lasts.
class Temporary {
  public:
    Temporary(int& target, int value) : target_(target), saved_(target) { target = value; }
    ~Temporary() { target_ = saved_; }

  private:
    int& target_;
    int saved_;
};

// Whether the body reads a name before it assigns it, closures included.
bool uses_undeclared(const Nodes& body, const std::string& name) {
    bool used = false;
    bool declared = false;
    for (const NodePtr& statement : body)
        for_each_node(*statement, [&](const Node& node) {
            for (const std::string& parameter : node.parameters) declared |= parameter == name;
            if (node.kind != Kind::name || node.name != name) return;
            if (node.flag)
                declared = true;  // a target
            else
                used |= !declared;
        });
    return used;
}

}  // namespace

NodePtr Parser::parse_set() {
    const int line = take().line;
    NodePtr target = parse_target(true, false);
    if (skip_symbol("=")) {
        NodePtr node = make(Kind::set_statement, line);
        node->parts.push_back(std::move(target));
        node->parts.push_back(parse_tuple(true, false));
        return done(std::move(node));
    }
    NodePtr node = make(Kind::set_block, line);
    node->parts.push_back(std::move(target));
    node->parts.push_back(parse_filter(nullptr));
    node->body = parse_body({"endset"});
    take();
    return done(std::move(node));
}

NodePtr Parser::parse_for() {
    NodePtr node = make(Kind::for_statement, take().line);
    node->parts.push_back(parse_target(false, true));
    if (!skip_name("in")) fail_here("expected 'in' after the loop's target");
    node->parts.push_back(parse_tuple(false, false, "recursive"));
    node->parts.push_back(skip_name("if") ? parse_expression() : nullptr);
    node->flag = skip_name("recursive");
    {
        const Temporary loop(loops_, loops_ + 1);
        node->body = parse_body({"else", "endfor"});
    }
    if (take().text == "else") {
        const Temporary loop(loops_, node->flag ? 0 : loops_);
        node->otherwise = parse_body({"endfor"});
        take();
    }
    for_each_node(*node, [&](const Node& inner) {
        if (inner.kind == Kind::name && inner.flag && inner.name == "loop")
            fail_at(inner.line, "Can't assign to special loop variable in for-loop");
    });
    return done(std::move(node));
}

// An elif is an if in `otherwise`, and no deeper than the first.
NodePtr Parser::parse_if() {
    NodePtr first = make(Kind::if_statement, take().line);
    first->parts.push_back(parse_tuple(false, false));
    first->body = parse_body({"elif", "else", "endif"});
    Nodes rest;
    std::string tag = current().text;
    int line = take().line;
    while (tag == "elif") {
        NodePtr branch = make(Kind::if_statement, line);
        branch->parts.push_back(parse_tuple(false, false));
        branch->body = parse_body({"elif", "else", "endif"});
        rest.push_back(done(std::move(branch)));
        tag = current().text;
        line = take().line;
    }
    if (tag == "else") {
        NodePtr branch = make(Kind::if_statement, line);  // without a condition
        branch->body = parse_body({"endif"});
        take();
        rest.push_back(done(std::move(branch)));
    }
    first->otherwise = std::move(rest);
    return done(std::move(first));
}

NodePtr Parser::parse_with() {
    NodePtr node = make(Kind::with_statement, take().line);
    while (current().kind != TokenKind::block_end) {
        if (!node->parts.empty()) expect_symbol(",");
        node->parts.push_back(parse_target(false, false));
        expect_symbol("=");
        node->parts.push_back(parse_expression());
    }
    node->body = parse_body({"endwith"});
    take();
    return done(std::move(node));
}

void Parser::parse_signature(Node& node) {
    expect_symbol("(");
    bool has_default = false;
    while (!is_symbol(")")) {
        if (!node.parameters.empty()) expect_symbol(",");
        node.parameters.push_back(expect_name());
        if (skip_symbol("=")) {
            has_default = true;
            node.parts.push_back(parse_expression());
        } else if (has_default) {
            fail_here("non-default argument follows default argument");
        }
    }
    expect_symbol(")");
}

void Parser::parse_macro_body(Node& node, const std::string& end) {
    const Temporary outside(loops_, 0);
    node.body = parse_body({end});
    take();
    node.uses_caller = uses_undeclared(node.body, "caller");
    node.uses_kwargs = uses_undeclared(node.body, "kwargs");
    node.uses_varargs = uses_undeclared(node.body, "varargs");
    for (const std::string& parameter : node.parameters) {
        if (parameter == "caller") node.uses_caller = false;
        if (parameter == "kwargs") node.uses_kwargs = false;
        if (parameter == "varargs") node.uses_varargs = false;
    }
}

NodePtr Parser::parse_macro() {
    NodePtr node = make(Kind::macro, take().line);
    node->name = expect_name();
    parse_signature(*node);
    parse_macro_body(*node, "endmacro");
    return done(std::move(node));
}

NodePtr Parser::parse_call_block() {
    NodePtr node = make(Kind::call_block, take().line);
    if (is_symbol("(")) parse_signature(*node);
    NodePtr call = parse_expression();
    if (call->kind != Kind::call) fail_at(node->line, "expected a call after {% call");
    node->parts.insert(node->parts.begin(), std::move(call));
    parse_macro_body(*node, "endcall");
    return done(std::move(node));
}

NodePtr Parser::parse_filter_block() {
    NodePtr node = make(Kind::filter_block, take().line);
    node->parts.push_back(parse_filter(nullptr, true));
    node->body = parse_body({"endfilter"});
    take();
    return done(std::move(node));
}

NodePtr Parser::parse_generation() {
    NodePtr node = make(Kind::generation, take().line);
    parse_macro_body(*node, "endgeneration");
    return done(std::move(node));
}

NodePtr Parser::parse_print() {
    NodePtr node = make(Kind::output, take().line);
    while (current().kind != TokenKind::block_end) {
        if (!node->parts.empty()) expect_symbol(",");
        node->parts.push_back(parse_expression());
    }
    return done(std::move(node));
}

NodePtr Parser::parse_loop_control() {
    const Token token = take();
    if (loops_ == 0) fail_at(token.line, "'" + token.text + "' outside a loop");
    return done(
        make(token.text == "break" ? Kind::break_statement : Kind::continue_statement, token.line));
}

// A name, a tuple of names, or an attribute of a namespace.
NodePtr Parser::parse_target(bool with_namespace, bool stops_at_in) {
    const int line = current().line;
    Nodes targets;
    bool is_tuple = false;
    for (;;) {
        const bool ends = current().kind == TokenKind::block_end ||
                          current().kind == TokenKind::output_end || is_symbol(")") ||
                          (stops_at_in && is_name("in"));
        if (ends && is_tuple) break;
        targets.push_back(parse_primary(with_namespace));
        mark_target(*targets.back());
        if (!skip_symbol(",")) break;
        is_tuple = true;
    }
    if (!is_tuple) return std::move(targets.front());
    NodePtr node = make(Kind::tuple, line);
    node->parts = std::move(targets);
    return done(std::move(node));
}

// Marks names that are assigned.
void Parser::mark_target(Node& target) const {
    if (target.kind == Kind::name) {
        target.flag = true;
    } else if (target.kind == Kind::tuple) {
        for (const NodePtr& part : target.parts) mark_target(*part);
    } else if (target.kind != Kind::namespace_target) {
        fail_at(target.line, "can't assign to this expression");
    }
}

}  // namespace hark::jinja
