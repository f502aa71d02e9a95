// Operators, from the weakest to the strongest: jinja2 3.1.6, parser.py.
#include "text/jinja/parser.h"

namespace hark::jinja {
namespace {

// node as the left operand of a new one.
NodePtr binary(NodePtr node, NodePtr left, NodePtr right) {
    node->parts.push_back(std::move(left));
    node->parts.push_back(std::move(right));
    return node;
}

}  // namespace

NodePtr Parser::parse_expression(bool with_condition) {
    const Level level(*this);
    return with_condition ? parse_conditional() : parse_or();
}

// Expressions with commas between them, or one alone. `end_name` ends it as a bracket does.
NodePtr Parser::parse_tuple(bool with_condition, bool in_parentheses, std::string_view end_name) {
    const int line = current().line;
    Nodes items;
    bool is_tuple = false;
    for (;;) {
        if (current().kind == TokenKind::output_end || current().kind == TokenKind::block_end ||
            is_symbol(")") || (!end_name.empty() && is_name(end_name)))
            break;
        items.push_back(parse_expression(with_condition));
        if (!skip_symbol(",")) break;
        is_tuple = true;
    }
    if (!is_tuple && !items.empty()) return std::move(items.front());
    if (!is_tuple && !in_parentheses) fail_here("expected an expression");
    NodePtr node = make(Kind::tuple, line);
    node->parts = std::move(items);
    return done(std::move(node));
}

NodePtr Parser::parse_conditional() {
    const int line = current().line;
    NodePtr value = parse_or();
    while (skip_name("if")) {
        NodePtr node = make(Kind::conditional, line);
        NodePtr condition = parse_or();
        node = binary(std::move(node), std::move(condition), std::move(value));
        node->parts.push_back(skip_name("else") ? parse_expression() : nullptr);
        value = done(std::move(node));
    }
    return value;
}

NodePtr Parser::parse_or() {
    NodePtr left = parse_and();
    while (is_name("or")) {
        NodePtr node = make(Kind::logical_or, take().line);
        left = done(binary(std::move(node), std::move(left), parse_and()));
    }
    return left;
}

NodePtr Parser::parse_and() {
    NodePtr left = parse_not();
    while (is_name("and")) {
        NodePtr node = make(Kind::logical_and, take().line);
        left = done(binary(std::move(node), std::move(left), parse_not()));
    }
    return left;
}

NodePtr Parser::parse_not() {
    const Level level(*this);
    if (!is_name("not")) return parse_comparison();
    NodePtr node = make(Kind::logical_not, take().line);
    node->parts.push_back(parse_not());
    return done(std::move(node));
}

NodePtr Parser::parse_comparison() {
    NodePtr node = make(Kind::comparison, current().line);
    node->parts.push_back(parse_sum());
    for (;;) {
        std::string symbol;
        for (const char* known : {"==", "!=", "<=", ">=", "<", ">"})
            if (is_symbol(known)) symbol = known;
        if (is_name("in")) symbol = "in";
        if (is_name("not") && look(1).kind == TokenKind::name && look(1).text == "in") {
            symbol = "not in";
            take();
        }
        if (symbol.empty()) break;
        take();
        node->operators.push_back(symbol);
        node->parts.push_back(parse_sum());
    }
    if (node->operators.empty()) return std::move(node->parts.front());
    return done(std::move(node));
}

NodePtr Parser::parse_sum() {
    NodePtr left = parse_concatenation();
    while (is_symbol("+") || is_symbol("-")) {
        NodePtr node = make(Kind::arithmetic, current().line, current().text);
        take();
        left = done(binary(std::move(node), std::move(left), parse_concatenation()));
    }
    return left;
}

NodePtr Parser::parse_concatenation() {
    const int line = current().line;
    NodePtr first = parse_product();
    if (!is_symbol("~")) return first;
    NodePtr node = make(Kind::concatenation, line);
    node->parts.push_back(std::move(first));
    while (skip_symbol("~")) node->parts.push_back(parse_product());
    return done(std::move(node));
}

NodePtr Parser::parse_product() {
    NodePtr left = parse_power();
    while (is_symbol("*") || is_symbol("/") || is_symbol("//") || is_symbol("%")) {
        NodePtr node = make(Kind::arithmetic, current().line, current().text);
        take();
        left = done(binary(std::move(node), std::move(left), parse_power()));
    }
    return left;
}

// Jinja writes a ** b ** c as ((a ** b) ** c) for Python.
NodePtr Parser::parse_power() {
    NodePtr left = parse_unary();
    while (is_symbol("**")) {
        NodePtr node = make(Kind::arithmetic, take().line, "**");
        left = done(binary(std::move(node), std::move(left), parse_unary()));
    }
    return left;
}

NodePtr Parser::parse_unary(bool with_filter) {
    const Level level(*this);
    NodePtr node;
    if (is_symbol("-") || is_symbol("+")) {
        node = make(is_symbol("-") ? Kind::negative : Kind::positive, current().line);
        take();
        node->parts.push_back(parse_unary(false));
        node = done(std::move(node));
    } else {
        node = parse_primary();
    }
    node = parse_postfix(std::move(node));
    return with_filter ? parse_filters_and_tests(std::move(node)) : std::move(node);
}

}  // namespace hark::jinja
