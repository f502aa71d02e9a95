#include "gpt/train/batch_reader.h"

#include <cstring>
#include <utility>

#include "core/profile/profile.h"

namespace hark::gpt {
namespace {

Batch empty_batch(Arena& arena, int64_t rows) {
    Batch batch;
    for (Tensor* ids : batch.all()) *ids = arena.tensor(Dtype::i32, {rows});
    return batch;
}

}  // namespace

void BatchRows::add(std::span<const int32_t> window) {
    for (size_t i = 0; i + 1 < window.size(); ++i) {
        if (separator_ >= 0 && window[i] == separator_) rows_.end_sequence();
        rows_.push(window[i], window[i + 1]);
    }
    rows_.end_sequence();
}

BatchReader::BatchReader(Context& ctx, const TrainingOrder& order, int64_t sequences,
                         int64_t length, int32_t separator, int rank, int ranks)
    : memory_(ctx.host_arena.source()),
      order_(order),
      sequences_(static_cast<uint64_t>(sequences)),
      rank_(static_cast<uint64_t>(rank)),
      ranks_(static_cast<uint64_t>(ranks)),
      rows_(separator),
      window_(static_cast<size_t>(length + 1)),
      now_(empty_batch(memory_, sequences * length)),
      next_(empty_batch(memory_, sequences * length)) {}

Batch BatchReader::read(uint64_t first) {
    const bool was_read = reading_.valid() && first_of_next_ == first;
    if (reading_.valid()) reading_.get();
    if (!was_read) fill(next_, first);
    std::swap(now_, next_);
    first_of_next_ = first + sequences_ * ranks_;
    reading_ = std::async(std::launch::async, [this] { fill(next_, first_of_next_); });
    return now_;
}

void BatchReader::fill(Batch& to, uint64_t first) {
    const ProfileSpan span("read");
    rows_.clear();
    for (uint64_t i = 0; i < sequences_; ++i) {
        order_.copy(first + i * ranks_ + rank_, window_);
        rows_.add(window_);
    }
    Batch from = rows_.view();
    for (size_t i = 0; i < from.all().size(); ++i)
        std::memcpy(to.all()[i]->data, from.all()[i]->data, from.all()[i]->bytes());
}

}  // namespace hark::gpt
