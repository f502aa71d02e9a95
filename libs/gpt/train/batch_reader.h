// Reads the batches of a run, one ahead.
#pragma once

#include <future>

#include "gpt/train/token_windows.h"
#include "gpt/train/training.h"

namespace hark::gpt {

// The rows of a batch on the host, sequence after sequence.
class BatchRows {
  public:
    // If `separator` >= 0, that token begins a new sequence, with positions from 0.
    explicit BatchRows(int32_t separator) : separator_(separator) {}
    void clear() { rows_ = {}; }
    void add(std::span<const int32_t> window);  // tokens and the next one
    Batch view() { return view_of(rows_); }

  private:
    int32_t separator_;
    PackedRows rows_;
};

// While a batch is computed, a thread reads the next one into pinned memory, which a GPU can copy
// from by itself.
class BatchReader {
  public:
    // Batches of `sequences` windows in `order`, for rank `rank` of `ranks`; `separator` as
    // BatchRows takes it.
    BatchReader(Context& ctx, const TrainingOrder& order, int64_t sequences, int64_t length,
                int32_t separator, int rank, int ranks);

    // This rank's batch of the run's sequences from `first` on, which the ranks take in turn. It is
    // valid until the next call. Throws Error if a file cannot be read.
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
    std::future<void> reading_;  // fills next_; the last member: it ends first
};

}  // namespace hark::gpt
