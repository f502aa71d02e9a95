// Requests in a profile: a row for each of those that run at the same time.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "core/profile/profile.h"

namespace hark::serve {

// Rows that no request has.
using RequestRows = std::vector<std::unique_ptr<ProfileTrack>>;

// A request, from its head to the end of its answer.
class RequestSpan {
  public:
    explicit RequestSpan(RequestRows& rows) : rows_(rows) {
        if (!is_measured()) return;
        if (rows_.empty()) rows_.push_back(std::make_unique<ProfileTrack>());
        row_ = std::move(rows_.back());
        rows_.pop_back();
        begin_ = monotonic_ns();
    }
    ~RequestSpan() {
        if (!row_) return;
        row_->add("wait.request", begin_, monotonic_ns() - begin_);
        rows_.push_back(std::move(row_));
    }
    RequestSpan(const RequestSpan&) = delete;
    RequestSpan& operator=(const RequestSpan&) = delete;

  private:
    RequestRows& rows_;
    std::unique_ptr<ProfileTrack> row_;
    int64_t begin_ = 0;
};

}  // namespace hark::serve
