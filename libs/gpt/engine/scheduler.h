// Which rows of which sequences the next pass computes.
#pragma once

#include <deque>
#include <span>
#include <vector>

#include "gpt/engine/batch_sequence.h"

namespace hark {
class KvCache;
}

namespace hark::gpt {

class DraftModel;

struct SchedulerOptions {
    int64_t max_sequences = 16;  // in the cache at once
    int64_t prompt_rows = 512;   // rows of a pass that has prompts, at most
    int64_t step_rows = 16;      // rows of a pass that has none, at most
    // Rows of a pass that has prompts and the next tokens of texts, at most. 0: no pass has both.
    int64_t mixed_rows = 0;
    // Prompts of several sequences share a pass. Else a pass has one prompt's rows, so that no
    // sequence's bits depend on another's.
    bool packs_prompts = false;
    // A prompt's passes have this many rows at least, if it is that long, so that all its rows are
    // computed by the kernels of many rows. 1: no such need.
    int64_t fewest_prompt_rows = 1;
    bool prefix_cache = true;
    // Tokens that are guessed per sequence and pass, at most, as long as all rows are at most
    // `draft_rows`: of many sequences fewer, or none.
    int64_t draft_tokens = 0, draft_rows = 0;
    DraftModel* draft_model = nullptr;  // what guesses them; nullptr: the text so far
    // Whether a text that the draft model has no memory for continues without guesses, or next()
    // throws: other ranks, which have it, would guess.
    bool continues_without_drafts = true;
};

// Sequences are admitted in the order of add(). A pass has the next tokens of all texts and, in
// what is left of mixed_rows, parts of prompts; without mixed_rows a pass has one or the other, and
// they take turns. So a long prompt does not halt the texts. If the cache is full, the sequence
// that was admitted last gives its blocks back and is computed again later: its prompt as before,
// its answer in passes of few rows. Source: Yu et al. 2022 (Orca), section 4; Agrawal et al. 2024
// (Sarathi-Serve), section 4.
class Scheduler {
  public:
    // Holds the reference.
    Scheduler(KvCache& cache, const SchedulerOptions& options);

    // The sequence stays the caller's, until remove(). Throws Error if the cache can never hold it.
    void add(BatchSequence& sequence);
    void remove(BatchSequence& sequence);
    // The next pass; the sequences' `computed` and `in_flight` count it. Empty: nothing to do, or
    // every sequence waits for a token that is in flight.
    std::vector<PassPiece> next();
    // Tells that the pass has been launched, so that its blocks may be shared.
    void launched(std::span<const PassPiece> pass);

    int64_t running() const { return std::ssize(running_); }
    int64_t waiting() const { return std::ssize(waiting_); }
    const BatchSequence& first_waiting() const { return *waiting_.front(); }
    int64_t preemptions() const { return preemptions_; }
    // Tokens of prompts that were in the cache when their sequence was admitted.
    int64_t cached_tokens() const { return cached_tokens_; }

  private:
    bool admit();
    void preempt(BatchSequence& sequence);
    void release(BatchSequence& sequence);
    bool in_prompt(const BatchSequence& sequence) const;
    int64_t prompt_rows(const BatchSequence& sequence, int64_t budget) const;
    // Adds the sequence's next n rows, and its drafts; false if there is no room, or it was
    // preempted.
    bool take(BatchSequence& sequence, int64_t n, std::vector<PassPiece>& pass);
    void take_steps(int64_t budget, std::vector<PassPiece>& pass);
    void draft(BatchSequence& sequence, int64_t most) const;
    void take_prompts(int64_t budget, std::vector<PassPiece>& pass);
    void take_mixed(std::vector<PassPiece>& pass);
    void take_turns(std::vector<PassPiece>& pass);

    KvCache& cache_;
    SchedulerOptions options_;
    std::vector<BatchSequence*> running_;  // in the order of admission
    std::deque<BatchSequence*> waiting_;
    std::vector<int64_t> free_slots_;
    uint64_t passes_ = 0;
    bool had_prompt_ = false;  // the last pass; without mixed_rows
    bool was_full_ = false;    // a sequence was preempted for this pass
    int64_t preemptions_ = 0, cached_tokens_ = 0;
};

}  // namespace hark::gpt
