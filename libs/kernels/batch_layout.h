// Packed rows whose index arrays are on the host, parts of packed rows, and the stages that
// --verbose reports.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <string>
#include <vector>

#include "kernels/ops.h"
#include "kernels/runtime/transfer.h"

namespace hark {

// Owns the arrays of a BatchLayout. Sequences are added in the order of their packed rows.
class HostBatchLayout {
  public:
    // Adds a sequence of `queries` packed rows on cache slot `slot`, `length` keys in all.
    void add(int64_t slot, int64_t queries, int64_t length) {
        start_.push_back(start_.back() + static_cast<int32_t>(queries));
        slot_.push_back(static_cast<int32_t>(slot));
        length_.push_back(static_cast<int32_t>(length));
        max_queries_ = std::max(max_queries_, queries);
        max_length_ = std::max(max_length_, length);
    }
    // b sequences of t rows each on slots 0, 1, ...; every row sees all of its sequence.
    static HostBatchLayout equal(int64_t b, int64_t t) {
        HostBatchLayout rows;
        for (int64_t i = 0; i < b; ++i) rows.add(i, t, t);
        return rows;
    }
    // Views of the arrays, valid while this object lives and nothing is added.
    BatchLayout view() const {
        const int64_t b = static_cast<int64_t>(slot_.size());
        return {tensor(start_, b + 1), tensor(slot_, b), tensor(length_, b), max_queries_,
                max_length_};
    }
    int64_t rows() const { return start_.back(); }

  private:
    static Tensor tensor(const std::vector<int32_t>& values, int64_t n) {
        return Tensor(const_cast<int32_t*>(values.data()), Dtype::i32, {n});
    }
    std::vector<int32_t> start_{0}, slot_, length_;
    int64_t max_queries_ = 0, max_length_ = 0;
};

// The sequences with few rows and the others of a layout whose `few` is not 0. Rows keep their
// numbers.
inline std::array<BatchLayout, 2> parts_of(const BatchLayout& rows) {
    const auto part = [&](int64_t begin, int64_t end) {
        BatchLayout of = rows;
        of.query_start = rows.query_start.slice(begin, end + 1);
        of.block_table = rows.block_table.slice(begin, end);
        of.length = rows.length.slice(begin, end);
        of.few = of.few_queries = 0;
        return of;
    };
    std::array<BatchLayout, 2> parts = {part(0, rows.few), part(rows.few, rows.sequences())};
    parts[0].max_queries = rows.few_queries;
    return parts;
}

// Reports `name shape ms` for the work done while it lives.
class Stage {
  public:
    Stage(Context& ctx, const char* name, const Tensor& shape)
        : ctx_(ctx),
          name_(name),
          shape_(ctx.on_stage ? describe(shape) : ""),
          begin_(std::chrono::steady_clock::now()) {}
    ~Stage() {
        if (!ctx_.on_stage) return;
        wait_for(ctx_);
        const std::chrono::duration<double, std::milli> ms =
            std::chrono::steady_clock::now() - begin_;
        ctx_.on_stage(name_, shape_, ms.count());
    }
    Stage(const Stage&) = delete;
    Stage& operator=(const Stage&) = delete;

  private:
    Context& ctx_;
    const char* name_;
    std::string shape_;
    std::chrono::steady_clock::time_point begin_;
};

}  // namespace hark
