#include "text/constrain/automaton.h"

#include <algorithm>

#include "core/error.h"
#include "text/constrain/left_recursion.h"

namespace hark {
namespace {

constexpr size_t kMostPositions = size_t{4} << 20;
using Kind = GrammarAutomaton::Position::Kind;

std::vector<std::string> names_of(const Grammar& grammar) {
    std::vector<std::string> names;
    for (const Grammar::RuleInfo& rule : grammar.rules()) names.push_back(rule.name);
    return names;
}

}  // namespace

GrammarAutomaton::GrammarAutomaton(const Grammar& grammar)
    : grammar_(&grammar), calls_(grammar), entries_(grammar.rules().size(), -1) {
    add({.kind = Kind::accept});
    for (size_t rule = 0; rule < entries_.size(); ++rule) {
        if (calls_.reachable[rule] && !calls_.expanded[rule])
            entries_[rule] = compile(grammar.rules()[rule].expr, kAccept);
    }
    root_ = grammar.root();
    grammar_ = nullptr;
    find_live();
    require(is_live(entry(root_)), "no text fits the constraint");
    check_left_recursion(*this, names_of(grammar));
    find_classes();
}

int32_t GrammarAutomaton::add(Position position) {
    require(positions_.size() < kMostPositions, "the constraint is too large (more than ",
            kMostPositions, " positions)");
    positions_.push_back(position);
    block_of_.push_back(block_);
    return static_cast<int32_t>(positions_.size() - 1);
}

// Returns where a text of the expression begins that continues at `next`.
int32_t GrammarAutomaton::compile(Grammar::Expr expr, int32_t next) {
    const Grammar::Node& node = grammar_->node(expr);
    switch (node.kind) {
        case Grammar::Kind::range:
            return add({Kind::range, static_cast<uint16_t>(node.first),
                        static_cast<uint16_t>(node.last), next});
        case Grammar::Kind::sequence:
            for (auto part = node.parts.rbegin(); part != node.parts.rend(); ++part)
                next = compile(*part, next);
            return next;
        case Grammar::Kind::choice:
            return compile_choice(node, next);
        case Grammar::Kind::repeat:
            return compile_repeat(node, next);
        case Grammar::Kind::graph:
            return compile_graph(node, next);
        case Grammar::Kind::call:
            break;
    }
    const auto rule = static_cast<size_t>(node.first);
    if (calls_.expanded[rule]) return compile(grammar_->rules()[rule].expr, next);
    return add({Kind::call, 0, 0, next, node.first});
}

int32_t GrammarAutomaton::compile_choice(const Grammar::Node& node, int32_t next) {
    int32_t entry = -1;
    for (auto part = node.parts.rbegin(); part != node.parts.rend(); ++part) {
        const int32_t one = compile(*part, next);
        entry = entry < 0 ? one : add({Kind::split, 0, 0, one, entry});
    }
    return entry < 0 ? add({Kind::split}) : entry;
}

int32_t GrammarAutomaton::compile_repeat(const Grammar::Node& node, int32_t next) {
    const Grammar::Expr part = node.parts[0];
    const bool unlimited = node.most == kUnlimited;
    const int64_t copies = unlimited ? node.least : node.most;
    int32_t entry = next;
    if (unlimited) {
        const int32_t loop = add({Kind::split, 0, 0, -1, next});
        const int32_t body = compile(part, loop);
        positions_[static_cast<size_t>(loop)].next = body;
        entry = loop;
    }
    const int32_t outer = block_;
    const bool counts = copies > 2 && consumes(part);
    if (counts) {
        blocks_.push_back(
            {static_cast<int32_t>(positions_.size()), 0, copies, node.least, unlimited, outer});
        block_ = static_cast<int32_t>(blocks_.size() - 1);
    }
    const int32_t block = block_;
    for (int64_t copy = copies - 1; copy >= 0; --copy) {
        const int32_t body = compile(part, entry);
        if (body == entry) break;  // an empty text, however often
        entry = add({Kind::split, 0, 0, body, copy >= node.least ? next : -1});
        if (!counts) continue;
        Block& one = blocks_[static_cast<size_t>(block)];
        if (one.size == 0) one.size = entry + 1 - one.base;
    }
    block_ = outer;
    return entry;
}

int32_t GrammarAutomaton::compile_graph(const Grammar::Node& node, int32_t next) {
    const Grammar::Graph& graph = grammar_->graph_of(node);
    std::vector<int32_t> states;
    for (const bool accepts : graph.accepts)
        states.push_back(add({Kind::split, 0, 0, accepts ? next : -1}));
    for (const Grammar::Graph::Edge& edge : graph.edges)
        add_epsilon(states[static_cast<size_t>(edge.from)],
                    compile(edge.label, states[static_cast<size_t>(edge.to)]));
    return states.empty() ? add({Kind::split}) : states[0];
}

void GrammarAutomaton::add_epsilon(int32_t from, int32_t to) {
    const Position& split = at(from);
    if (split.next < 0) {
        positions_[static_cast<size_t>(from)].next = to;
    } else {
        const int32_t more = split.other < 0 ? to : add({Kind::split, 0, 0, to, split.other});
        positions_[static_cast<size_t>(from)].other = more;
    }
}

// Whether each text of the expression certainly has a symbol.
bool GrammarAutomaton::consumes(Grammar::Expr expr) const {
    const Grammar::Node& node = grammar_->node(expr);
    const auto part_consumes = [&](Grammar::Expr part) { return consumes(part); };
    switch (node.kind) {
        case Grammar::Kind::range:
            return true;
        case Grammar::Kind::sequence:
            return std::any_of(node.parts.begin(), node.parts.end(), part_consumes);
        case Grammar::Kind::choice:
            return std::all_of(node.parts.begin(), node.parts.end(), part_consumes);
        case Grammar::Kind::repeat:
            return node.least > 0 && consumes(node.parts[0]);
        default:
            return false;
    }
}

// From the end backward: each position is reached once from each that it leads to.
void GrammarAutomaton::find_live() {
    const size_t n = positions_.size();
    const auto for_each_target = [&](size_t p, const auto& use) {
        const Position& position = positions_[p];
        if (position.next >= 0) use(static_cast<size_t>(position.next));
        if (position.kind == Kind::split && position.other >= 0)
            use(static_cast<size_t>(position.other));
        if (position.kind == Kind::call) use(static_cast<size_t>(entry(position.other)));
    };
    std::vector<size_t> ends(n + 1), sources;  // those that lead to p end at ends[p]
    for (size_t p = 0; p < n; ++p) for_each_target(p, [&](size_t to) { ++ends[to + 1]; });
    for (size_t p = 0; p < n; ++p) ends[p + 1] += ends[p];
    sources.resize(ends[n]);
    std::vector<size_t> fill(ends.begin(), ends.end() - 1);
    for (size_t p = 0; p < n; ++p) for_each_target(p, [&](size_t to) { sources[fill[to]++] = p; });
    live_.assign(n, false);
    live_[kAccept] = true;
    for (std::vector<size_t> open = {kAccept}; !open.empty();) {
        const size_t reached = open.back();
        open.pop_back();
        for (size_t i = ends[reached]; i < ends[reached + 1]; ++i) {
            const size_t p = sources[i];
            const Position& position = positions_[p];
            if (live_[p]) continue;
            if (position.kind == Kind::call &&
                !(is_live(position.next) && is_live(entry(position.other))))
                continue;
            live_[p] = true;
            open.push_back(p);
        }
    }
}

void GrammarAutomaton::find_classes() {
    std::vector<bool> begins(kMostClasses + 1);
    begins[0] = true;
    for (size_t p = 0; p < positions_.size(); ++p)
        if (positions_[p].kind == Kind::range && live_[p])
            begins[positions_[p].first] = begins[positions_[p].last + 1u] = true;
    for (size_t symbol = 0; symbol < kMostClasses; ++symbol) {
        if (begins[symbol]) class_symbol_.push_back(static_cast<int32_t>(symbol));
        class_of_[symbol] = static_cast<uint16_t>(class_symbol_.size() - 1);
    }
}

int32_t GrammarAutomaton::canonical(int32_t position, int64_t lookahead) const {
    for (int32_t b = block_of_[static_cast<size_t>(position)]; b >= 0;
         b = blocks_[static_cast<size_t>(b)].parent) {
        const Block& block = blocks_[static_cast<size_t>(b)];
        const int64_t copy = block.copies - 1 - (position - block.base) / block.size;
        const int64_t reach = copy + lookahead + 1;
        int64_t same = copy;
        if (reach < block.least)
            same = 0;
        else if (copy >= block.least && !block.unlimited && reach < block.copies)
            same = block.least;
        position += static_cast<int32_t>((copy - same) * block.size);
    }
    return position;
}

}  // namespace hark
