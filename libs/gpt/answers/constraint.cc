#include "gpt/answers/constraint.h"

#include <algorithm>
#include <array>

#include "core/error.h"
#include "core/json/json.h"
#include "text/constrain/gbnf.h"
#include "text/constrain/json_grammar.h"
#include "text/constrain/json_schema.h"
#include "text/constrain/regex_pattern.h"

namespace hark::gpt {
namespace {

using Kind = ConstraintRequest::Kind;

constexpr size_t kMostMasks = 64;

Grammar regex_grammar(const std::string& pattern) {
    Grammar grammar;
    const Grammar::Rule root = grammar.add_rule("the regular expression");
    grammar.define(root, spelled(grammar, whole_match(pattern), utf8_char));
    grammar.set_root(root);
    return grammar;
}

Grammar parsed_schema_grammar(const std::string& text) {
    const nlohmann::ordered_json schema = parse_ordered_json(text, "schema");
    require(!schema.is_discarded(), "schema: expected JSON, found text that is not");
    return schema_grammar(schema);
}

}  // namespace

Grammar constraint_grammar(const ConstraintRequest& request) {
    switch (request.kind) {
        case Kind::none:
            break;
        case Kind::json:
            return json_grammar(true);
        case Kind::json_object:
            return json_grammar(false);
        case Kind::schema:
            return parsed_schema_grammar(request.text);
        case Kind::regex:
            return regex_grammar(request.text);
        case Kind::grammar:
            return parse_gbnf(request.text);
    }
    fail("internal error: no constraint");
}

void check_constraint(const ConstraintRequest& request) {
    if (request.kind != Kind::none) GrammarAutomaton{constraint_grammar(request)};
}

Constraints::Constraints(const Tokenizer& tokenizer, std::vector<int32_t> ends,
                         const ReasoningMarkers* markers)
    : tokenizer_(tokenizer), ends_(std::move(ends)), markers_(markers) {
    if (markers_) specials_ = marker_tokens(*markers_, tokenizer_);
    require(specials_.size() <= static_cast<size_t>(kMostSpecialSymbols),
            "internal error: too many markers of reasoning");
}

std::shared_ptr<TokenMasks> Constraints::masks(const ConstraintRequest& request, bool opened) {
    if (request.kind == Kind::none) return nullptr;
    std::shared_ptr<TokenMasks>& known = masks_[{request, opened}];
    if (known) return known;
    if (!trie_) trie_ = std::make_shared<TokenTrie>(tokenizer_, specials_);
    Grammar grammar = constraint_grammar(request);
    if (markers_) allow_reasoning(grammar, opened);
    auto made = std::make_shared<TokenMasks>(grammar, trie_, ends_);
    // A run's lines may each have a schema of their own.
    if (masks_.size() > kMostMasks) masks_.clear();
    return masks_[{request, opened}] = std::move(made);
}

// A marker is its special token if it is one, else its text.
Grammar::Expr Constraints::marker(Grammar& grammar, std::string_view text) const {
    const auto id = tokenizer_.id_of(text);
    const auto special = std::find(specials_.begin(), specials_.end(), id.value_or(-1));
    return special == specials_.end()
               ? grammar.text(text)
               : grammar.special(static_cast<int32_t>(special - specials_.begin()));
}

// Any bytes up to the first `end`, and that. Source: Knuth, Morris and Pratt 1977.
Grammar::Expr Constraints::text_until(Grammar& grammar, std::string_view end) const {
    const Grammar::Expr any = grammar.range(0, 255), mark = marker(grammar, end);
    if (grammar.node(mark).kind == Grammar::Kind::range)
        return grammar.sequence({grammar.repeat(any, 0, kUnlimited), mark});
    Grammar::Graph graph;
    graph.accepts.assign(end.size() + 1, false);
    graph.accepts.back() = true;
    const auto next = [&](size_t matched, char byte) {
        const std::string text = std::string(end.substr(0, matched)) + byte;
        size_t length = std::min(text.size(), end.size());
        while (!text.ends_with(end.substr(0, length))) --length;
        return static_cast<int32_t>(length);
    };
    for (size_t matched = 0; matched < end.size(); ++matched)
        for (int32_t first = 0, last = 0; first < 256; first = last + 1) {
            const int32_t to = next(matched, static_cast<char>(first));
            last = first;
            while (last < 255 && next(matched, static_cast<char>(last + 1)) == to) ++last;
            graph.edges.push_back({static_cast<int32_t>(matched), to, grammar.range(first, last)});
        }
    return grammar.graph(std::move(graph));
}

void Constraints::allow_reasoning(Grammar& grammar, bool opened) const {
    const Grammar::Expr answer = grammar.call(grammar.root());
    const Grammar::Rule root = grammar.add_rule("the answer");
    Grammar::Expr begin = 0, reasoning = 0, before_answer = 0;
    if (markers_->form == ReasoningMarkers::Form::tags) {
        begin = marker(grammar, markers_->begin);
        reasoning = text_until(grammar, markers_->end);
        before_answer = grammar.empty();
        // Line ends after the marker belong to it.
        reasoning = grammar.sequence({reasoning, grammar.repeat(grammar.text("\n"), 0, 2)});
    } else {
        const auto channel = [&](std::string_view name) {
            return grammar.sequence({marker(grammar, "<|channel|>"), grammar.text(name),
                                     marker(grammar, "<|message|>")});
        };
        begin = channel("analysis");
        reasoning = grammar.sequence({text_until(grammar, "<|end|>"), marker(grammar, "<|start|>"),
                                      grammar.text("assistant")});
        before_answer = channel("final");
    }
    if (!opened) reasoning = grammar.optional(grammar.sequence({begin, reasoning}));
    grammar.define(root, grammar.sequence({reasoning, before_answer, answer}));
    grammar.set_root(root);
}

ConstraintEnd end_of(TokenMasks& masks, const std::vector<int32_t>& tokens) {
    TokenMasks::State state = masks.start();
    for (const int32_t token : tokens) state = masks.next(state, token);
    return {masks.can_end(state), masks.is_final(state)};
}

}  // namespace hark::gpt
