// Rows of several sequences on the host, packed one after another.
#pragma once

#include <cstdint>
#include <vector>

namespace hark::gpt {

struct PackedRows {
    std::vector<int32_t> tokens, targets;       // a target of -1 has no loss
    std::vector<int32_t> position, first, end;  // first, end: rows of the row's sequence

    // Adds a row to the current sequence; its position is its place there.
    void push(int32_t token, int32_t target) {
        position.push_back(static_cast<int32_t>(std::ssize(tokens) - std::ssize(end)));
        first.push_back(static_cast<int32_t>(end.size()));
        tokens.push_back(token);
        targets.push_back(target);
    }
    void end_sequence() {  // no effect if it has no rows
        end.resize(tokens.size(), static_cast<int32_t>(tokens.size()));
    }
    int64_t size() const { return std::ssize(tokens); }
    // The sequences whose rows are from `from` to `to`.
    PackedRows part(int64_t from, int64_t to) const {
        PackedRows rows;
        for (auto row = static_cast<size_t>(from); row < static_cast<size_t>(to); ++row) {
            rows.push(tokens[row], targets[row]);
            if (end[row] == std::ssize(rows.tokens) + from) rows.end_sequence();
        }
        return rows;
    }
};

}  // namespace hark::gpt
