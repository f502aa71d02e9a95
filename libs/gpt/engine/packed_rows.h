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
};

}  // namespace hark::gpt
