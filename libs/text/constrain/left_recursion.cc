#include "text/constrain/left_recursion.h"

#include <utility>

#include "core/error.h"

namespace hark {
namespace {

using Kind = GrammarAutomaton::Position::Kind;

class Beginnings {
  public:
    explicit Beginnings(const GrammarAutomaton& automaton)
        : automaton_(automaton), nullable_(automaton.rules()), seen_(automaton.positions()) {
        for (bool changed = true; changed;) {
            changed = false;
            for (size_t rule = 0; rule < automaton_.rules(); ++rule) {
                if (!is_rule(rule) || nullable_[rule]) continue;
                find_calls(rule);
                if (ends_) nullable_[rule] = changed = true;
            }
        }
    }

    // The rules that are called before the rule's first symbol.
    std::vector<size_t> find_calls(size_t rule) {
        std::vector<size_t> calls;
        if (!is_rule(rule)) return calls;
        ++round_;
        ends_ = false;
        open_ = {automaton_.entry(static_cast<int32_t>(rule))};
        while (!open_.empty()) {
            const GrammarAutomaton::Position& position = automaton_.at(open_.back());
            open_.pop_back();
            if (position.kind == Kind::accept) ends_ = true;
            if (position.kind == Kind::split) reach(position.next), reach(position.other);
            if (position.kind != Kind::call) continue;
            const auto called = static_cast<size_t>(position.other);
            calls.push_back(called);
            if (nullable_[called]) reach(position.next);
        }
        return calls;
    }

  private:
    bool is_rule(size_t rule) const {
        const int32_t entry = automaton_.entry(static_cast<int32_t>(rule));
        return entry >= 0 && automaton_.is_live(entry);
    }
    void reach(int32_t position) {
        if (position < 0 || !automaton_.is_live(position)) return;
        if (std::exchange(seen_[static_cast<size_t>(position)], round_) != round_)
            open_.push_back(position);
    }

    const GrammarAutomaton& automaton_;
    std::vector<bool> nullable_;
    std::vector<uint32_t> seen_;  // the round that has reached a position
    uint32_t round_ = 0;
    std::vector<int32_t> open_;
    bool ends_ = false;
};

}  // namespace

void check_left_recursion(const GrammarAutomaton& automaton,
                          const std::vector<std::string>& names) {
    Beginnings beginnings(automaton);
    std::vector<std::vector<size_t>> calls;
    for (size_t rule = 0; rule < automaton.rules(); ++rule)
        calls.push_back(beginnings.find_calls(rule));
    // A rule that is reached again while it is open calls itself.
    enum class Mark : uint8_t { unseen, open, done };
    std::vector<Mark> marks(calls.size(), Mark::unseen);
    for (size_t first = 0; first < calls.size(); ++first) {
        std::vector<std::pair<size_t, size_t>> path;  // a rule, the next one of its calls
        if (marks[first] == Mark::unseen) path.emplace_back(first, 0), marks[first] = Mark::open;
        while (!path.empty()) {
            const size_t rule = path.back().first;
            if (path.back().second == calls[rule].size()) {
                marks[rule] = Mark::done;
                path.pop_back();
                continue;
            }
            const size_t called = calls[rule][path.back().second++];
            require(marks[called] != Mark::open, "the rule ", names[called],
                    " refers to itself before any text (left recursion)");
            if (marks[called] != Mark::unseen) continue;
            marks[called] = Mark::open;
            path.emplace_back(called, 0);
        }
    }
}

}  // namespace hark
