// Literals, and what may follow a value: jinja2 3.1.6, parser.py.
#include "core/error.h"
#include "text/jinja/parser.h"

namespace hark::jinja {

NodePtr Parser::parse_primary(bool with_namespace) {
    const Token& token = current();
    switch (token.kind) {
        case TokenKind::name:
            return parse_name(with_namespace);
        case TokenKind::string:
            return parse_string();
        case TokenKind::integer:
        case TokenKind::real: {
            NodePtr node = make(Kind::constant, token.line);
            node->value = token.kind == TokenKind::real ? Value(token.real) : Value(token.integer);
            take();
            return done(std::move(node));
        }
        default:
            break;
    }
    if (is_symbol("[")) return parse_list();
    if (is_symbol("{")) return parse_dict();
    if (!skip_symbol("(")) fail_here("expected an expression");
    NodePtr node = parse_tuple(true, true);
    expect_symbol(")");
    return node;
}

NodePtr Parser::parse_name(bool with_namespace) {
    const Token token = take();
    NodePtr node = make(Kind::constant, token.line);
    if (token.text == "true" || token.text == "True") {
        node->value = true;
    } else if (token.text == "false" || token.text == "False") {
        node->value = false;
    } else if (token.text == "none" || token.text == "None") {
        node->value = None{};
    } else {
        node->kind = Kind::name;
        node->name = token.text;
        if (with_namespace && skip_symbol(".")) {
            node->kind = Kind::namespace_target;
            node->parts.push_back(make(Kind::constant, token.line));
            node->parts.back()->value = std::make_shared<const Text>(expect_name());
        }
    }
    return done(std::move(node));
}

// Literals next to one another are one.
NodePtr Parser::parse_string() {
    NodePtr node = make(Kind::constant, current().line);
    std::string text;
    while (current().kind == TokenKind::string) text += take().text;
    node->value = std::make_shared<const Text>(text);
    return done(std::move(node));
}

NodePtr Parser::parse_list() {
    NodePtr node = make(Kind::list, take().line);
    while (!is_symbol("]")) {
        if (!node->parts.empty()) expect_symbol(",");
        if (is_symbol("]")) break;
        node->parts.push_back(parse_expression());
    }
    take();
    return done(std::move(node));
}

NodePtr Parser::parse_dict() {
    NodePtr node = make(Kind::dict, take().line);
    while (!is_symbol("}")) {
        if (!node->parts.empty()) expect_symbol(",");
        if (is_symbol("}")) break;
        node->parts.push_back(parse_expression());
        expect_symbol(":");
        node->parts.push_back(parse_expression());
    }
    take();
    return done(std::move(node));
}

NodePtr Parser::parse_postfix(NodePtr node) {
    for (;;) {
        if (is_symbol("."))
            node = parse_attribute(std::move(node));
        else if (is_symbol("["))
            node = parse_subscript(std::move(node));
        else if (is_symbol("("))
            node = parse_call(std::move(node));
        else
            return node;
    }
}

NodePtr Parser::parse_filters_and_tests(NodePtr node) {
    for (;;) {
        if (is_symbol("|"))
            node = parse_filter(std::move(node));
        else if (is_name("is"))
            node = parse_test(std::move(node));
        else if (is_symbol("("))
            node = parse_call(std::move(node));
        else
            return node;
    }
}

NodePtr Parser::parse_attribute(NodePtr object) {
    const int line = take().line;
    NodePtr node = make(Kind::attribute, line);
    node->parts.push_back(std::move(object));
    const Token token = take();
    if (token.kind == TokenKind::name) {
        node->name = token.text;
    } else if (token.kind == TokenKind::integer) {
        node->kind = Kind::subscript;
        node->parts.push_back(make(Kind::constant, line));
        node->parts.back()->value = token.integer;
    } else {
        fail_at(line, "expected a name or a number after '.'");
    }
    return done(std::move(node));
}

NodePtr Parser::parse_subscript(NodePtr object) {
    NodePtr node = make(Kind::subscript, take().line);
    Nodes keys;
    while (!is_symbol("]")) {
        if (!keys.empty()) expect_symbol(",");
        keys.push_back(parse_subscribed());
    }
    take();
    if (keys.size() == 1 && keys.front()->kind == Kind::slice) {
        keys.front()->parts.front() = std::move(object);
        return done(std::move(keys.front()));
    }
    for (const NodePtr& key : keys)
        if (key->kind == Kind::slice)
            fail_at(node->line, "a slice must be a subscript's only part");
    node->parts.push_back(std::move(object));
    if (keys.size() == 1) {
        node->parts.push_back(std::move(keys.front()));
    } else {
        NodePtr tuple = make(Kind::tuple, node->line);
        tuple->parts = std::move(keys);
        node->parts.push_back(done(std::move(tuple)));
    }
    return done(std::move(node));
}

// A key, or a slice without its object.
NodePtr Parser::parse_subscribed() {
    const int line = current().line;
    const auto ends = [&] { return is_symbol("]") || is_symbol(",") || is_symbol(":"); };
    NodePtr begin = is_symbol(":") ? nullptr : parse_expression();
    if (begin && !is_symbol(":")) return begin;
    take();
    NodePtr node = make(Kind::slice, line);
    node->parts.push_back(nullptr);
    node->parts.push_back(std::move(begin));
    node->parts.push_back(ends() ? nullptr : parse_expression());
    node->parts.push_back(skip_symbol(":") && !ends() ? parse_expression() : nullptr);
    return node;
}

NodePtr Parser::parse_call(NodePtr function) {
    NodePtr node = make(Kind::call, current().line);
    node->parts.push_back(std::move(function));
    node->arguments = parse_arguments();
    return done(std::move(node));
}

std::unique_ptr<CallArguments> Parser::parse_arguments() {
    const int line = take().line;
    auto arguments = std::make_unique<CallArguments>();
    const auto ensure = [&](bool holds) {
        if (!holds) fail_at(line, "invalid syntax for a call");
    };
    for (bool first = true; !is_symbol(")"); first = false) {
        if (!first) expect_symbol(",");
        if (is_symbol(")")) break;
        if (skip_symbol("*")) {
            ensure(!arguments->starred && !arguments->double_starred);
            arguments->starred = parse_expression();
        } else if (skip_symbol("**")) {
            ensure(!arguments->double_starred);
            arguments->double_starred = parse_expression();
        } else if (current().kind == TokenKind::name && look(1).kind == TokenKind::symbol &&
                   look(1).text == "=") {
            ensure(!arguments->double_starred);
            std::string name = take().text;
            take();
            arguments->named.emplace_back(std::move(name), parse_expression());
        } else {
            ensure(!arguments->starred && !arguments->double_starred && arguments->named.empty());
            arguments->positional.push_back(parse_expression());
        }
    }
    take();
    return arguments;
}

std::string Parser::parse_dotted_name() {
    std::string name = expect_name();
    while (skip_symbol(".")) name += "." + expect_name();
    return name;
}

NodePtr Parser::parse_filter(NodePtr node, bool inline_start) {
    while (is_symbol("|") || inline_start) {
        if (!inline_start) take();
        inline_start = false;
        NodePtr filter = make(Kind::filter, current().line, parse_dotted_name());
        filter->arguments = is_symbol("(") ? parse_arguments() : std::make_unique<CallArguments>();
        filter->parts.push_back(std::move(node));
        node = done(std::move(filter));
    }
    return node;
}

NodePtr Parser::parse_test(NodePtr operand) {
    const int line = take().line;
    const bool negated = skip_name("not");
    NodePtr node = make(Kind::test, line, parse_dotted_name());
    node->parts.push_back(std::move(operand));
    const TokenKind kind = current().kind;
    const bool is_operand = kind == TokenKind::name || kind == TokenKind::string ||
                            kind == TokenKind::integer || kind == TokenKind::real ||
                            is_symbol("[") || is_symbol("{");
    if (is_symbol("(")) {
        node->arguments = parse_arguments();
    } else {
        node->arguments = std::make_unique<CallArguments>();
        if (is_operand && !is_name("else") && !is_name("or") && !is_name("and")) {
            if (is_name("is")) fail_here("tests cannot be chained with is");
            node->arguments->positional.push_back(parse_postfix(parse_primary()));
        }
    }
    node = done(std::move(node));
    if (!negated) return node;
    NodePtr inverse = make(Kind::logical_not, line);
    inverse->parts.push_back(std::move(node));
    return done(std::move(inverse));
}

}  // namespace hark::jinja
