// Parses a template's tokens to its tree, by the grammar of jinja2 3.1.6.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/jinja/ast.h"
#include "text/jinja/lexer.h"

namespace hark::jinja {

// The tree's height, and how deep expressions and blocks may be nested.
inline constexpr int kMaxTreeHeight = 200;

class Parser {
  public:
    explicit Parser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

    // Throws Error "line N: ...".
    Nodes parse();

  private:
    // One level of nesting; throws Error beyond kMaxTreeHeight.
    class Level;

    // Tokens (parser.cc).
    const Token& current() const { return tokens_[at_]; }
    const Token& look(size_t ahead) const;
    Token take();
    bool is_symbol(std::string_view symbol) const;
    bool is_name(std::string_view name) const;
    bool skip_symbol(std::string_view symbol);
    bool skip_name(std::string_view name);
    void expect_symbol(std::string_view symbol);
    std::string expect_name();
    [[noreturn]] void fail_at(int line, const std::string& what) const;
    [[noreturn]] void fail_here(const std::string& what) const { fail_at(current().line, what); }
    NodePtr make(Kind kind, int line, std::string name = {}) const;
    // Sets the height of a node that is complete.
    NodePtr done(NodePtr node) const;

    // Statements (parser.cc, parser_statements.cc).
    Nodes parse_until(const std::vector<std::string>& ends);
    Nodes parse_body(const std::vector<std::string>& ends);
    NodePtr parse_statement();
    NodePtr parse_output();
    NodePtr parse_set();
    NodePtr parse_for();
    NodePtr parse_if();
    NodePtr parse_with();
    NodePtr parse_macro();
    NodePtr parse_call_block();
    NodePtr parse_filter_block();
    NodePtr parse_generation();
    NodePtr parse_print();
    NodePtr parse_loop_control();
    void parse_signature(Node& node);
    void parse_macro_body(Node& node, const std::string& end);
    NodePtr parse_target(bool with_namespace, bool stops_at_in);
    void mark_target(Node& target) const;

    // Expressions (parser_expressions.cc).
    NodePtr parse_expression(bool with_condition = true);
    NodePtr parse_tuple(bool with_condition, bool in_parentheses, std::string_view end_name = {});
    NodePtr parse_conditional();
    NodePtr parse_or();
    NodePtr parse_and();
    NodePtr parse_not();
    NodePtr parse_comparison();
    NodePtr parse_sum();
    NodePtr parse_concatenation();
    NodePtr parse_product();
    NodePtr parse_power();
    NodePtr parse_unary(bool with_filter = true);

    // Primaries and what follows them (parser_primaries.cc).
    NodePtr parse_primary(bool with_namespace = false);
    NodePtr parse_name(bool with_namespace);
    NodePtr parse_string();
    NodePtr parse_list();
    NodePtr parse_dict();
    NodePtr parse_postfix(NodePtr node);
    NodePtr parse_filters_and_tests(NodePtr node);
    NodePtr parse_attribute(NodePtr node);
    NodePtr parse_subscript(NodePtr node);
    NodePtr parse_subscribed();
    NodePtr parse_call(NodePtr node);
    NodePtr parse_filter(NodePtr node, bool inline_start = false);
    NodePtr parse_test(NodePtr node);
    std::unique_ptr<CallArguments> parse_arguments();
    std::string parse_dotted_name();

    std::vector<Token> tokens_;
    size_t at_ = 0;
    int level_ = 0;
    int loops_ = 0;  // open loops that break and continue can end
};

class Parser::Level {
  public:
    explicit Level(Parser& parser);
    ~Level() { --parser_.level_; }

  private:
    Parser& parser_;
};

}  // namespace hark::jinja
