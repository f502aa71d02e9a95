// Which rows a pass has; the engine's tests compare texts.
#include "gpt/engine/scheduler.h"

#include <gtest/gtest.h>

#include "core/context.h"
#include "nn/kv_cache.h"

namespace hark::gpt {
namespace {

class Passes : public testing::Test {
  protected:
    static constexpr int64_t kSequences = 4;

    Passes() : cache_(shape(), ctx_.arena.source()) {}

    static KvCacheShape shape() {
        KvCacheShape shape;
        shape.layers = {LayerKeeps{}};
        shape.heads = 1;
        shape.head_dim = 4;
        shape.sequences = kSequences;
        shape.capacity = 1024;
        shape.block = kBlockTokens;
        return shape;
    }
    BatchSequence text(int64_t prompt) {
        TextRequest request;
        request.prompt.assign(static_cast<size_t>(prompt), 1);
        request.max_tokens = 20;
        return BatchSequence(next_++, std::move(request));
    }
    // The rows of each sequence in the next pass, whose samples are all token 2.
    std::vector<std::pair<uint64_t, int64_t>> next(Scheduler& scheduler) {
        std::vector<std::pair<uint64_t, int64_t>> rows;
        for (const PassPiece& piece : scheduler.next()) {
            rows.emplace_back(piece.sequence->id, piece.rows());
            if (piece.samples == 0) continue;
            --piece.sequence->in_flight;
            piece.sequence->sampler.append(2);
        }
        return rows;
    }
    using Rows = std::vector<std::pair<uint64_t, int64_t>>;

    Context ctx_;
    KvCache cache_;
    uint64_t next_ = 0;
};

TEST_F(Passes, HaveTheNextTokensOfTextsAndThenPartsOfPrompts) {
    Scheduler scheduler(cache_, {.max_sequences = kSequences,
                                 .prompt_rows = 200,
                                 .step_rows = kSequences,
                                 .mixed_rows = 64,
                                 .packs_prompts = true});
    BatchSequence a = text(150), b = text(100), c = text(40);
    scheduler.add(a);
    scheduler.add(b);
    EXPECT_EQ(next(scheduler), (Rows{{0, 150}, {1, 50}}));  // no texts yet
    EXPECT_EQ(next(scheduler), (Rows{{0, 1}, {1, 50}}));
    scheduler.add(c);
    EXPECT_EQ(next(scheduler), (Rows{{0, 1}, {1, 1}, {2, 40}}));
    EXPECT_EQ(next(scheduler), (Rows{{0, 1}, {1, 1}, {2, 1}}));
    BatchSequence d = text(100);
    scheduler.add(d);
    EXPECT_EQ(next(scheduler), (Rows{{0, 1}, {1, 1}, {2, 1}, {3, 61}}));
    EXPECT_EQ(next(scheduler), (Rows{{0, 1}, {1, 1}, {2, 1}, {3, 39}}));
    EXPECT_EQ(next(scheduler), (Rows{{0, 1}, {1, 1}, {2, 1}, {3, 1}}));
}

// A prompt of one token, and one whose other tokens are in the cache.
TEST_F(Passes, BeginTextsThatHaveOneRowToCompute) {
    for (const int64_t mixed : {0, 64}) {
        SCOPED_TRACE(mixed);
        Scheduler scheduler(cache_, {.max_sequences = kSequences,
                                     .prompt_rows = 200,
                                     .step_rows = kSequences,
                                     .mixed_rows = mixed,
                                     .packs_prompts = true});
        BatchSequence one = text(1), first = text(33), again = text(33);
        scheduler.add(one);
        EXPECT_EQ(next(scheduler), (Rows{{one.id, 1}}));
        scheduler.remove(one);
        scheduler.add(first);
        const std::vector<PassPiece> pass = scheduler.next();
        scheduler.launched(pass);
        EXPECT_EQ(pass.front().rows(), mixed == 0 ? 33 : 1);  // the second time it is in the cache
        scheduler.remove(first);
        scheduler.add(again);
        EXPECT_EQ(next(scheduler), (Rows{{again.id, 1}}));
        scheduler.remove(again);
    }
}

// Guesses share the rows of a pass among the texts.
TEST_F(Passes, GuessFewerTokensTheMoreTextsThereAre) {
    Scheduler scheduler(cache_, {.max_sequences = kSequences,
                                 .prompt_rows = 200,
                                 .step_rows = 32,
                                 .draft_tokens = 5,
                                 .draft_rows = 12});
    constexpr int32_t kPeriod = 10;  // of the texts, so that there is a guess at each place
    const auto rows = [&] {
        std::vector<int64_t> rows;
        for (const PassPiece& piece : scheduler.next()) {
            BatchSequence& sequence = *piece.sequence;
            rows.push_back(piece.rows());
            --sequence.in_flight;
            sequence.drafts.clear();
            sequence.computed = std::ssize(sequence.tokens());
            sequence.sampler.append(static_cast<int32_t>(sequence.tokens().size()) % kPeriod);
        }
        return rows;
    };
    TextRequest request;
    for (int32_t i = 0; i < 3 * kPeriod; ++i) request.prompt.push_back(i % kPeriod);
    request.max_tokens = 50;
    std::deque<BatchSequence> texts;
    for (const int64_t expected : {6, 6, 4, 3}) {
        scheduler.add(texts.emplace_back(texts.size(), request));
        EXPECT_EQ(rows(), std::vector<int64_t>{3 * kPeriod});
        EXPECT_EQ(rows(), std::vector<int64_t>(texts.size(), expected));
    }
}

TEST_F(Passes, TakeTurnsWithoutMixedRows) {
    Scheduler scheduler(cache_,
                        {.max_sequences = kSequences, .prompt_rows = 64, .step_rows = kSequences});
    BatchSequence a = text(60), b = text(100);
    scheduler.add(a);
    scheduler.add(b);
    EXPECT_EQ(next(scheduler), (Rows{{0, 60}}));
    EXPECT_EQ(next(scheduler), (Rows{{0, 1}}));
    EXPECT_EQ(next(scheduler), (Rows{{1, 64}}));
    EXPECT_EQ(next(scheduler), (Rows{{0, 1}}));
    EXPECT_EQ(next(scheduler), (Rows{{1, 36}}));
    EXPECT_EQ(next(scheduler), (Rows{{0, 1}, {1, 1}}));
}

}  // namespace
}  // namespace hark::gpt
