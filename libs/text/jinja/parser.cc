#include "text/jinja/parser.h"

#include <algorithm>

#include "core/error.h"

namespace hark::jinja {
namespace {

std::string describe_token(const Token& token) {
    switch (token.kind) {
        case TokenKind::data:
            return "template data";
        case TokenKind::output_begin:
            return "{{";
        case TokenKind::output_end:
            return "}}";
        case TokenKind::block_begin:
            return "{%";
        case TokenKind::block_end:
            return "%}";
        case TokenKind::string:
            return "a string";
        case TokenKind::integer:
        case TokenKind::real:
            return "a number";
        case TokenKind::end:
            return "the end of the template";
        default:
            return "'" + token.text + "'";
    }
}

}  // namespace

Parser::Level::Level(Parser& parser) : parser_(parser) {
    if (parser.level_ >= kMaxTreeHeight)
        parser.fail_here(concat("nested deeper than ", kMaxTreeHeight, " levels"));
    ++parser.level_;
}

const Token& Parser::look(size_t ahead) const {
    return tokens_[std::min(at_ + ahead, tokens_.size() - 1)];
}

Token Parser::take() {
    const Token token = current();
    if (at_ + 1 < tokens_.size()) ++at_;
    return token;
}

bool Parser::is_symbol(std::string_view symbol) const {
    return current().kind == TokenKind::symbol && current().text == symbol;
}

bool Parser::is_name(std::string_view name) const {
    return current().kind == TokenKind::name && current().text == name;
}

bool Parser::skip_symbol(std::string_view symbol) {
    if (!is_symbol(symbol)) return false;
    take();
    return true;
}

bool Parser::skip_name(std::string_view name) {
    if (!is_name(name)) return false;
    take();
    return true;
}

void Parser::expect_symbol(std::string_view symbol) {
    if (!skip_symbol(symbol))
        fail_here(concat("got ", describe_token(current()), ", expected '", symbol, "'"));
}

std::string Parser::expect_name() {
    if (current().kind != TokenKind::name)
        fail_here(concat("got ", describe_token(current()), ", expected a name"));
    return take().text;
}

void Parser::fail_at(int line, const std::string& what) const { fail("line ", line, ": ", what); }

NodePtr Parser::make(Kind kind, int line, std::string name) const {
    auto node = std::make_unique<Node>();
    node->kind = kind;
    node->line = line;
    node->name = std::move(name);
    return node;
}

NodePtr Parser::done(NodePtr node) const {
    int height = 0;
    const auto cover = [&](const NodePtr& child) {
        if (child) height = std::max(height, child->height);
    };
    for (const Nodes* nodes : {&node->parts, &node->body, &node->otherwise})
        for (const NodePtr& child : *nodes) cover(child);
    if (node->arguments) {
        for (const NodePtr& child : node->arguments->positional) cover(child);
        for (const auto& named : node->arguments->named) cover(named.second);
        cover(node->arguments->starred);
        cover(node->arguments->double_starred);
    }
    node->height = height + 1;
    if (node->height > kMaxTreeHeight)
        fail_at(node->line, concat("nested deeper than ", kMaxTreeHeight, " levels"));
    return node;
}

Nodes Parser::parse() {
    Nodes nodes = parse_until({});
    if (current().kind != TokenKind::end) fail_here("got " + describe_token(current()));
    return nodes;
}

// Everything up to a tag that is one of `ends`, whose name is then the current token.
Nodes Parser::parse_until(const std::vector<std::string>& ends) {
    Nodes nodes;
    for (;;) {
        const Token& token = current();
        if (token.kind == TokenKind::end) {
            if (!ends.empty()) fail_here("the template ends, expected {% " + ends.back() + " %}");
            return nodes;
        }
        if (token.kind == TokenKind::data) {
            nodes.push_back(make(Kind::data, token.line));
            nodes.back()->value = std::make_shared<const Text>(token.text);
            take();
        } else if (token.kind == TokenKind::output_begin) {
            nodes.push_back(parse_output());
        } else {
            take();  // {%
            for (const std::string& end : ends)
                if (is_name(end)) return nodes;
            nodes.push_back(parse_statement());
            if (current().kind != TokenKind::block_end)
                fail_here("got " + describe_token(current()) + ", expected %}");
            take();
        }
    }
}

// The rest of a tag, and its body up to the tag that ends it.
Nodes Parser::parse_body(const std::vector<std::string>& ends) {
    const Level level(*this);
    skip_symbol(":");
    if (current().kind != TokenKind::block_end)
        fail_here("got " + describe_token(current()) + ", expected %}");
    take();
    return parse_until(ends);
}

NodePtr Parser::parse_output() {
    NodePtr node = make(Kind::output, take().line);
    node->parts.push_back(parse_tuple(true, false));
    if (current().kind != TokenKind::output_end)
        fail_here("got " + describe_token(current()) + ", expected }}");
    take();
    return done(std::move(node));
}

NodePtr Parser::parse_statement() {
    if (current().kind != TokenKind::name) fail_here("a tag's name is expected after {%");
    using Parse = NodePtr (Parser::*)();
    static const std::pair<const char*, Parse> kStatements[] = {
        {"set", &Parser::parse_set},
        {"for", &Parser::parse_for},
        {"if", &Parser::parse_if},
        {"with", &Parser::parse_with},
        {"macro", &Parser::parse_macro},
        {"call", &Parser::parse_call_block},
        {"filter", &Parser::parse_filter_block},
        {"generation", &Parser::parse_generation},
        {"print", &Parser::parse_print},
        {"break", &Parser::parse_loop_control},
        {"continue", &Parser::parse_loop_control},
    };
    for (const auto& [name, parse] : kStatements)
        if (is_name(name)) return (this->*parse)();
    for (const char* other : {"include", "import", "from", "extends", "block", "autoescape"})
        if (is_name(other))
            fail_here(concat("{% ", other, " %} is not supported in a chat template"));
    fail_here("unknown tag '" + current().text + "'");
}

}  // namespace hark::jinja
