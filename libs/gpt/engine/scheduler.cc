#include "gpt/engine/scheduler.h"

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "gpt/engine/draft_model.h"
#include "gpt/engine/drafts.h"
#include "gpt/engine/prompt_pieces.h"
#include "nn/kv_cache.h"

namespace hark::gpt {

Scheduler::Scheduler(KvCache& cache, const SchedulerOptions& options)
    : cache_(cache), options_(options) {
    for (int64_t slot = options.max_sequences - 1; slot >= 0; --slot) free_slots_.push_back(slot);
}

void Scheduler::add(BatchSequence& sequence) {
    const int64_t needed = sequence.prompt() + sequence.request.max_tokens - 1;
    require(cache_.can_hold(needed), "the key/value cache has memory for ",
            cache_.pool(0).most() * cache_.block_tokens(), " tokens, and a text may have ",
            cache_.capacity(), "; found a prompt and answer of ", needed);
    waiting_.push_back(&sequence);
}

void Scheduler::release(BatchSequence& sequence) {
    std::erase(running_, &sequence);
    cache_.clear(sequence.slot);
    free_slots_.push_back(sequence.slot);
    sequence.slot = BatchSequence::kNoSlot;
    sequence.computed = 0;
    sequence.drafts.clear();
}

void Scheduler::remove(BatchSequence& sequence) {
    if (sequence.slot != BatchSequence::kNoSlot)
        release(sequence);
    else
        std::erase(waiting_, &sequence);
}

void Scheduler::preempt(BatchSequence& sequence) {
    release(sequence);
    waiting_.push_front(&sequence);
    was_full_ = true;
    ++preemptions_;
}

// Where prompts are packed, all that a preempted sequence had is computed like a prompt.
bool Scheduler::in_prompt(const BatchSequence& sequence) const {
    if (options_.packs_prompts) return sequence.left() > 1;
    return sequence.computed < sequence.prompt();
}

int64_t Scheduler::prompt_rows(const BatchSequence& sequence, int64_t budget) const {
    const int64_t end = options_.packs_prompts ? sequence.length() : sequence.prompt();
    return prompt_piece(end - sequence.computed, budget, options_.fewest_prompt_rows);
}

bool Scheduler::take(BatchSequence& sequence, int64_t n, std::vector<PassPiece>& pass) {
    const int64_t begin = sequence.computed;
    const auto end = [&] { return begin + n + std::ssize(sequence.drafts); };
    while (!cache_.make_room(sequence.slot, begin, end())) {
        if (!sequence.drafts.empty()) {
            sequence.drafts.clear();
            continue;
        }
        BatchSequence& last = *running_.back();
        // Its rows in this pass, if any, are dropped.
        std::erase_if(pass, [&](const PassPiece& piece) {
            if (piece.sequence != &last) return false;
            if (piece.samples > 0) --last.in_flight;
            return true;
        });
        preempt(last);
        if (&last == &sequence) return false;
    }
    sequence.computed += n;
    sequence.last_pass = passes_;
    const bool samples = sequence.left() == 0 && !sequence.is_complete();
    const int64_t drafts = std::ssize(sequence.drafts);
    pass.push_back({&sequence, begin, end(), samples ? 1 + drafts : 0});
    if (samples) ++sequence.in_flight;
    sequence.computed += drafts;
    return true;
}

// Nothing is guessed beyond the answer's last token. A text that the draft model has no memory for
// continues without guesses: they change its speed alone.
void Scheduler::draft(BatchSequence& sequence, int64_t most) const {
    if (sequence.left() != 1 || !sequence.guesses) return;
    const int64_t answered = sequence.length() - sequence.prompt();
    most = std::min(most, sequence.request.max_tokens - answered - 1);
    try {
        sequence.drafts = options_.draft_model ? options_.draft_model->propose(sequence, most)
                                               : draft_tokens(sequence.tokens(), most);
    } catch (const std::exception& why) {
        if (!options_.continues_without_drafts || !is_out_of_memory(why)) throw;
        sequence.guesses = false;
    }
}

// Those that have waited longest come first.
void Scheduler::take_steps(int64_t budget, std::vector<PassPiece>& pass) {
    std::vector<BatchSequence*> order;
    for (BatchSequence* sequence : running_)
        if (sequence->has_rows() && !in_prompt(*sequence)) order.push_back(sequence);
    std::stable_sort(order.begin(), order.end(),
                     [](const auto* a, const auto* b) { return a->last_pass < b->last_pass; });
    const auto texts = std::max<int64_t>(std::ssize(order), 1);
    const int64_t drafts =
        std::min({options_.draft_tokens, options_.draft_rows / texts - 1, kFewQueries - 1});
    for (BatchSequence* sequence : order) {
        if (budget == 0) break;
        if (sequence->slot == BatchSequence::kNoSlot) continue;  // preempted by an earlier one
        const int64_t n = std::min({sequence->left(), kFewQueries, budget});
        if (drafts > 0) {
            if (sequence->in_flight > 0) continue;  // what follows is guessed from its token
            draft(*sequence, std::min(drafts, budget - n));
        }
        const int64_t rows = n + std::ssize(sequence->drafts);
        if (take(*sequence, n, pass)) budget -= rows;
    }
}

bool Scheduler::admit() {
    if (waiting_.empty() || free_slots_.empty() || was_full_) return false;
    BatchSequence& sequence = *waiting_.front();
    const int64_t slot = free_slots_.back();
    // At least the last token is computed: its logits are needed.
    const int64_t most = std::max<int64_t>(sequence.prompt() - options_.fewest_prompt_rows, 0);
    sequence.computed = 0;
    if (options_.prefix_cache)
        sequence.computed = cache_.start_with_prefix(
            slot, std::span(sequence.tokens()).first(static_cast<size_t>(most)));
    const int64_t begin = sequence.computed, n = prompt_rows(sequence, options_.prompt_rows);
    if (!cache_.make_room(slot, begin, begin + n)) {
        cache_.clear(slot);
        sequence.computed = 0;
        return false;
    }
    if (!std::exchange(sequence.has_begun, true)) {
        sequence.begun = std::chrono::steady_clock::now();
        sequence.cached = begin;
        cached_tokens_ += begin;
    }
    sequence.slot = slot;
    free_slots_.pop_back();
    waiting_.pop_front();
    running_.push_back(&sequence);
    return true;
}

void Scheduler::take_prompts(int64_t budget, std::vector<PassPiece>& pass) {
    const size_t before = pass.size();
    for (size_t i = 0; budget > 0; ++i) {
        if (i == running_.size() && !admit()) return;
        BatchSequence& sequence = *running_[i];
        if (!sequence.has_rows() || !in_prompt(sequence)) continue;
        const int64_t n = prompt_rows(sequence, budget);
        if (!take(sequence, n, pass)) return;
        budget -= n;
        if (!options_.packs_prompts && pass.size() > before) return;
    }
}

std::vector<PassPiece> Scheduler::next() {
    ++passes_;
    was_full_ = false;
    std::vector<PassPiece> pass;
    options_.mixed_rows > 0 ? take_mixed(pass) : take_turns(pass);
    if (pass.empty()) take_steps(options_.step_rows, pass);  // new ones with one row to compute
    return pass;
}

void Scheduler::take_mixed(std::vector<PassPiece>& pass) {
    take_steps(options_.step_rows, pass);
    int64_t most = pass.empty() ? options_.prompt_rows : options_.mixed_rows;
    for (const PassPiece& piece : pass) most -= piece.rows();
    take_prompts(most, pass);
}

void Scheduler::take_turns(std::vector<PassPiece>& pass) {
    if (!had_prompt_) take_prompts(options_.prompt_rows, pass);
    had_prompt_ = !pass.empty();
    if (pass.empty()) take_steps(options_.step_rows, pass);
    if (pass.empty()) take_prompts(options_.prompt_rows, pass);
}

void Scheduler::launched(std::span<const PassPiece> pass) {
    if (!options_.prefix_cache) return;
    for (const PassPiece& piece : pass) {
        // Keys of an answer's tokens come from other kernels than those of a prompt's.
        const int64_t known = std::min(piece.end, piece.sequence->prompt());
        cache_.add_prefix(piece.sequence->slot,
                          std::span(piece.sequence->tokens()).first(static_cast<size_t>(known)));
    }
}

}  // namespace hark::gpt
