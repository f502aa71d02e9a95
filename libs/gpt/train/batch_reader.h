// The batches of a run, read one ahead.
#pragma once

#include <future>

#include "gpt/train/token_windows.h"
#include "gpt/train/training.h"

namespace hark::gpt {

// The rows of a batch on the host, sequence after sequence.
class BatchRows {
  public:
    // With `separator` >= 0 that token begins a sequence of its own, with positions from 0 on.
    explicit BatchRows(int32_t separator) : separator_(separator) {}
    void clear() { rows_ = {}; }
    void add(std::span<const int32_t> window);  // tokens, and the last one's successor
    Batch view() { return rows_.view(); }

  private:
    int32_t separator_;
    PackedRows rows_;
};

// While a batch is computed, a thread reads the one behind it into memory that a GPU can copy from
// by itself (pinned).
class BatchReader {
  public:
    // Batches of `sequences` windows in `order`, for rank `rank` of `ranks`; `separator` as
    // BatchRows takes it.
    BatchReader(Context& ctx, const TrainingOrder& order, int64_t sequences, int64_t length,
                int32_t separator, int rank, int ranks);

    // Of the run's sequences from `first` on, which the ranks take in turn, this rank's batch; it
    // stays until the next call but one. Throws Error where the files cannot be read.
    Batch read(uint64_t first);

  private:
    void fill(Batch& to, uint64_t first);

    Arena memory_;
    const TrainingOrder& order_;
    uint64_t sequences_, rank_, ranks_;
    BatchRows rows_;
    std::vector<int32_t> window_;
    Batch now_, next_;
    uint64_t first_of_next_ = 0;
    std::future<void> reading_;  // of next_; last, so that it ends before what it uses
};

}  // namespace hark::gpt
