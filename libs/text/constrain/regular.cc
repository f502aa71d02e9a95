#include "text/constrain/regular.h"

#include <algorithm>
#include <map>
#include <utility>

#include "core/error.h"

namespace hark {
namespace {

constexpr size_t kMostRegularStates = 100'000;

void check_regular_states(size_t states) {
    require(states <= kMostRegularStates,
            "the constraint is too large (a regular expression of more than ", kMostRegularStates,
            " states)");
}

// Thompson's automaton of an expression: edges of characters, and others that are free, or free at
// the text's begin or end alone.
class Thompson {
  public:
    struct State {
        enum class Kind { split, chars, begin, end, accept } kind = Kind::split;
        const CharSet* set = nullptr;
        int32_t next = -1, other = -1;
    };

    explicit Thompson(const Regular& regular) {
        add({State::Kind::accept});
        entry_ = compile(regular, 0);
    }
    const State& at(int32_t state) const { return states_[static_cast<size_t>(state)]; }
    int32_t entry() const { return entry_; }
    size_t size() const { return states_.size(); }

  private:
    int32_t add(State state) {
        states_.push_back(state);
        check_regular_states(states_.size());
        return static_cast<int32_t>(states_.size() - 1);
    }
    int32_t compile(const Regular& regular, int32_t next) {
        using Kind = Regular::Kind;
        const std::vector<Regular>& parts = regular.parts();
        switch (regular.kind()) {
            case Kind::chars:
                return add({State::Kind::chars, &regular.set(), next});
            case Kind::begin:
                return add({State::Kind::begin, nullptr, next});
            case Kind::end:
                return add({State::Kind::end, nullptr, next});
            case Kind::sequence:
                for (auto part = parts.rbegin(); part != parts.rend(); ++part)
                    next = compile(*part, next);
                return next;
            case Kind::choice: {
                int32_t entry = add({});
                for (auto part = parts.rbegin(); part != parts.rend(); ++part)
                    entry = add({State::Kind::split, nullptr, compile(*part, next), entry});
                return entry;
            }
            case Kind::repeat:
                break;
        }
        int32_t entry = next;
        if (regular.most() == kUnlimited) {
            entry = add({State::Kind::split, nullptr, -1, next});
            const int32_t body = compile(parts[0], entry);
            states_[static_cast<size_t>(entry)].next = body;
        }
        const int64_t copies = regular.most() == kUnlimited ? regular.least() : regular.most();
        for (int64_t copy = copies - 1; copy >= 0; --copy) {
            const int32_t body = compile(parts[0], entry);
            if (body == entry) break;  // an empty text, however often
            entry = body;
            if (copy >= regular.least()) entry = add({State::Kind::split, nullptr, entry, next});
        }
        return entry;
    }

    std::vector<State> states_;
    int32_t entry_ = 0;
};

using Edge = CharAutomaton::Edge;

// One edge per target.
void merge_edges(std::vector<Edge>& edges) {
    std::stable_sort(edges.begin(), edges.end(),
                     [](const Edge& a, const Edge& b) { return a.to < b.to; });
    std::vector<Edge> merged;
    for (size_t i = 0; i < edges.size();) {
        std::vector<CharRange> ranges;
        const int32_t to = edges[i].to;
        for (; i < edges.size() && edges[i].to == to; ++i)
            ranges.insert(ranges.end(), edges[i].set.ranges().begin(), edges[i].set.ranges().end());
        if (!ranges.empty()) merged.push_back({CharSet(std::move(ranges)), to});
    }
    edges = std::move(merged);
}

// Makes states as they are reached: `Key` names one.
template <class Key>
class StateMaker {
  public:
    explicit StateMaker(CharAutomaton& automaton) : automaton_(automaton) {}
    int32_t of(const Key& key) {
        const auto [place, is_new] = ids_.try_emplace(key, static_cast<int32_t>(keys_.size()));
        if (is_new) {
            keys_.push_back(key);
            automaton_.edges.emplace_back();
            automaton_.accepts.push_back(false);
            check_regular_states(keys_.size());
        }
        return place->second;
    }
    size_t size() const { return keys_.size(); }
    Key key(size_t state) const { return keys_[state]; }

  private:
    CharAutomaton& automaton_;
    std::map<Key, int32_t> ids_;
    std::vector<Key> keys_;
};

}  // namespace

Regular Regular::make(Kind kind, std::vector<Regular> parts, CharSet set, int64_t least,
                      int64_t most) {
    return Regular(
        std::make_shared<const Node>(Node{kind, std::move(parts), std::move(set), least, most}));
}

Regular Regular::text(std::u32string_view text) {
    std::vector<Regular> parts;
    for (const char32_t c : text) parts.push_back(chars(CharSet::of(c)));
    return sequence(std::move(parts));
}

Regular Regular::repeat(Regular part, int64_t least, int64_t most) {
    return make(Kind::repeat, {std::move(part)}, {}, least, most);
}

Regular Regular::containing(Regular part) {
    const Regular any = repeat(chars(CharSet::all()), 0, kUnlimited);
    return sequence({any, std::move(part), any});
}

CharAutomaton::CharAutomaton(const Regular& regular) {
    const Thompson thompson(regular);
    // A state of Thompson's, and whether the text begins there.
    StateMaker<std::pair<int32_t, bool>> states(*this);
    states.of({thompson.entry(), true});
    std::vector<size_t> seen(2 * thompson.size(), SIZE_MAX);
    for (size_t state = 0; state < states.size(); ++state) {
        const auto [first, at_begin] = states.key(state);
        std::vector<std::pair<int32_t, bool>> open = {{first, false}};
        std::vector<Edge> out;
        while (!open.empty()) {
            const auto [s, ended] = open.back();
            open.pop_back();
            if (s < 0) continue;
            size_t& mark = seen[static_cast<size_t>(2 * s + ended)];
            if (std::exchange(mark, state) == state) continue;
            const Thompson::State& at = thompson.at(s);
            using Kind = Thompson::State::Kind;
            if (at.kind == Kind::accept) accepts[state] = true;
            if (at.kind == Kind::chars && !ended)
                out.push_back({*at.set, states.of({at.next, false})});
            if (at.kind == Kind::split)
                open.insert(open.end(), {{at.next, ended}, {at.other, ended}});
            if (at.kind == Kind::begin && at_begin) open.emplace_back(at.next, ended);
            if (at.kind == Kind::end) open.emplace_back(at.next, true);
        }
        merge_edges(out);
        edges[state] = std::move(out);
    }
}

bool CharAutomaton::matches(std::u32string_view text) const {
    std::vector<bool> at(edges.size());
    if (at.empty()) return false;
    at[0] = true;
    for (const char32_t c : text) {
        std::vector<bool> after(edges.size());
        for (size_t state = 0; state < edges.size(); ++state)
            if (at[state])
                for (const Edge& edge : edges[state])
                    if (edge.set.contains(c)) after[static_cast<size_t>(edge.to)] = true;
        at = std::move(after);
    }
    for (size_t state = 0; state < edges.size(); ++state)
        if (at[state] && accepts[state]) return true;
    return false;
}

bool CharAutomaton::empty() const {
    std::vector<bool> reached(edges.size());
    std::vector<size_t> open;
    if (!reached.empty()) reached[0] = true, open = {0};
    while (!open.empty()) {
        const size_t state = open.back();
        open.pop_back();
        if (accepts[state]) return false;
        for (const Edge& edge : edges[state])
            if (!reached[static_cast<size_t>(edge.to)]) {
                reached[static_cast<size_t>(edge.to)] = true;
                open.push_back(static_cast<size_t>(edge.to));
            }
    }
    return true;
}

CharAutomaton intersection(const CharAutomaton& a, const CharAutomaton& b) {
    CharAutomaton both;
    StateMaker<std::pair<int32_t, int32_t>> states(both);
    states.of({0, 0});
    for (size_t state = 0; state < states.size(); ++state) {
        const auto [left, right] = states.key(state);
        both.accepts[state] =
            a.accepts[static_cast<size_t>(left)] && b.accepts[static_cast<size_t>(right)];
        std::vector<Edge> out;
        for (const Edge& one : a.edges[static_cast<size_t>(left)])
            for (const Edge& other : b.edges[static_cast<size_t>(right)]) {
                CharSet set = one.set & other.set;
                if (!set.empty()) out.push_back({std::move(set), states.of({one.to, other.to})});
            }
        merge_edges(out);
        both.edges[state] = std::move(out);
    }
    return both;
}

namespace {

// With `whole`, also the state of no state, in which texts end that lead nowhere.
CharAutomaton determinized(const CharAutomaton& automaton, bool whole) {
    CharAutomaton made;
    StateMaker<std::vector<int32_t>> states(made);
    states.of({0});
    for (size_t state = 0; state < states.size(); ++state) {
        const std::vector<int32_t> members = states.key(state);
        std::vector<std::pair<CharRange, int32_t>> ranges;
        std::vector<char32_t> begins = {0};
        for (const int32_t member : members) {
            if (automaton.accepts[static_cast<size_t>(member)]) made.accepts[state] = true;
            for (const Edge& edge : automaton.edges[static_cast<size_t>(member)])
                for (const CharRange& range : edge.set.ranges()) {
                    ranges.emplace_back(range, edge.to);
                    begins.push_back(range.first), begins.push_back(range.last + 1);
                }
        }
        std::sort(begins.begin(), begins.end());
        begins.erase(std::unique(begins.begin(), begins.end()), begins.end());
        begins.push_back(0x110000);
        std::sort(ranges.begin(), ranges.end());
        std::vector<Edge> out;
        std::vector<std::pair<CharRange, int32_t>> active;
        size_t next = 0;
        for (size_t i = 0; i + 1 < begins.size(); ++i) {
            const char32_t first = begins[i], last = begins[i + 1] - 1;
            if (first > last) continue;
            std::erase_if(active, [&](const auto& one) { return one.first.last < first; });
            for (; next < ranges.size() && ranges[next].first.first == first; ++next)
                active.push_back(ranges[next]);
            if (active.empty() && !whole) continue;
            std::vector<int32_t> key;
            for (const auto& [range, to] : active) key.push_back(to);
            std::sort(key.begin(), key.end());
            key.erase(std::unique(key.begin(), key.end()), key.end());
            out.push_back({CharSet({{first, last}}), states.of(key)});
        }
        merge_edges(out);
        made.edges[state] = std::move(out);
    }
    return made;
}

}  // namespace

CharAutomaton determinized(const CharAutomaton& automaton) {
    return determinized(automaton, false);
}

CharAutomaton complement(const CharAutomaton& automaton) {
    CharAutomaton other = determinized(automaton, true);
    other.accepts.flip();
    return other;
}

Grammar::Expr spelled(Grammar& grammar, const CharAutomaton& automaton, const SpellChar& spell) {
    std::map<CharSet, Grammar::Expr> labels;
    Grammar::Graph graph;
    graph.accepts = automaton.accepts;
    for (size_t from = 0; from < automaton.edges.size(); ++from)
        for (const Edge& edge : automaton.edges[from]) {
            auto label = labels.find(edge.set);
            if (label == labels.end())
                label = labels.emplace(edge.set, spell(grammar, edge.set)).first;
            graph.edges.push_back({static_cast<int32_t>(from), edge.to, label->second});
        }
    return grammar.graph(std::move(graph));
}

}  // namespace hark
