// Models are loaded when they are asked for, shared, and unloaded when nobody uses them.
#include "serve/models/model_pool.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>
#include <thread>

namespace hark::test {
namespace {

using namespace hark::serve;
using Clock = std::chrono::steady_clock;

// The server's thread: the test itself, while it waits.
class Turns {
  public:
    void post(std::function<void()> work) { post_later(0, std::move(work)); }
    void post_later(double seconds, std::function<void()> work) {
        const std::lock_guard lock(mutex_);
        const auto due = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                            std::chrono::duration<double>(seconds));
        works_.push_back({due, std::move(work)});
    }
    // Until the condition holds.
    void await(const std::function<bool()>& condition) {
        const auto end = Clock::now() + std::chrono::seconds(30);
        while (!condition()) {
            ASSERT_LT(Clock::now(), end);
            if (!run_one()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
    }
    void run_for(double seconds) {
        const auto end = Clock::now() + std::chrono::duration<double>(seconds);
        await([&] { return Clock::now() >= end; });
    }

  private:
    struct Work {
        Clock::time_point due;
        std::function<void()> run;
    };
    bool run_one() {
        std::function<void()> run;
        {
            const std::lock_guard lock(mutex_);
            const auto now = Clock::now();
            const auto found = std::find_if(works_.begin(), works_.end(),
                                            [&](const Work& work) { return work.due <= now; });
            if (found == works_.end()) return false;
            run = std::move(found->run);
            works_.erase(found);
        }
        run();
        return true;
    }

    std::mutex mutex_;
    std::deque<Work> works_;
};

struct FakeLog {
    std::atomic<int> opened = 0, read = 0, begun = 0, stopped = 0, destroyed = 0;
    std::atomic<int64_t> cache_bytes = 0;
    std::atomic<bool> is_held = false;  // reads wait
};

class FakeModel : public ServedModel {
  public:
    FakeModel(FakeLog& log, int64_t bytes) : log_(log), bytes_(bytes) {}
    ~FakeModel() override { ++log_.destroyed; }
    ModelKind kind() const override { return ModelKind::text; }
    void begin() override { ++log_.begun; }
    void stop() override { ++log_.stopped; }
    int64_t bytes() const override { return bytes_; }

  private:
    FakeLog& log_;
    int64_t bytes_;
};

// A pool of 100 bytes. The path of a model says how many bytes it needs: "60/name". Its caches take
// none of them.
class Pool : public ::testing::Test {
  protected:
    void start(double keep_seconds, int64_t most_waiting = 16) {
        pool_ = std::make_unique<ModelPool>(ModelPoolOptions{
            .memory = 100,
            .keep_seconds = keep_seconds,
            .most_waiting = most_waiting,
            .open =
                [this](const std::string& name, const std::string& path) {
                    ++log_.opened;
                    if (name == "broken") throw WebError(500, "broken: no weights");
                    OpenedModel opened;
                    opened.need.weights = std::stoll(path);
                    opened.need.most = name == "cached" ? 1000 : 0;
                    if (name == "speech") opened.facts.kind = ModelKind::audio;
                    return opened;
                },
            .read =
                [this](const std::string& name, const OpenedModel& opened, int64_t cache_bytes) {
                    while (log_.is_held) std::this_thread::sleep_for(std::chrono::milliseconds(1));
                    ++log_.read;
                    log_.cache_bytes = cache_bytes;
                    if (name == "unlucky") throw OutOfMemory("needed 7 bytes more");
                    if (name == "poor") throw std::bad_alloc();
                    return std::make_shared<FakeModel>(log_, opened.need.weights);
                },
            .post = [this](std::function<void()> work) { turns_.post(std::move(work)); },
            .post_later =
                [this](double seconds, std::function<void()> work) {
                    turns_.post_later(seconds, std::move(work));
                }});
    }

    // A request that ends at once, or holds its model until its lease is dropped.
    struct Asked {
        int answered = 0;
        std::string refused;
        int status = 0;
        ModelLease lease;
        bool is_wanted = true, holds = false, is_poor = false;
        bool is_done() const { return answered > 0 || status > 0; }
    };
    void ask(const std::string& path, Asked& asked, ModelKind kind = ModelKind::text) {
        ModelRequest request{.kind = kind};
        request.use = [&asked](ServedModel&, ModelLease lease) {
            if (asked.is_poor) throw std::bad_alloc();
            ++asked.answered;
            if (asked.holds) asked.lease = std::move(lease);
        };
        request.refuse = [&asked](const WebError& why) {
            asked.refused = why.what();
            asked.status = why.status;
        };
        request.is_wanted = [&asked] { return asked.is_wanted; };
        try {
            pool_->use(path, path.substr(path.find('/') + 1), request);
        } catch (const WebError& why) {
            request.refuse(why);
        }
    }
    void ask_and_wait(const std::string& path, Asked& asked) {
        ask(path, asked);
        turns_.await([&] { return asked.is_done(); });
    }
    ModelCounts counts(const std::string& name) { return pool_->counts()[name]; }
    void await_unloads(const std::string& name, uint64_t n) {
        turns_.await([&] { return counts(name).unloads == n; });
    }

    FakeLog log_;
    Turns turns_;
    std::unique_ptr<ModelPool> pool_;
};

}  // namespace

TEST_F(Pool, RequestsShareALoadWhichOthersDoNotWaitFor) {
    start(60);
    pool_->add("10/named", "named", std::make_shared<FakeModel>(log_, 10));
    log_.is_held = true;
    Asked one, other, meanwhile;
    ask("60/a", one);
    ask("60/a", other);
    turns_.run_for(0.05);
    ask("10/named", meanwhile);
    EXPECT_EQ(meanwhile.answered, 1);
    EXPECT_FALSE(one.is_done() || other.is_done());
    log_.is_held = false;
    turns_.await([&] { return one.is_done() && other.is_done(); });
    EXPECT_EQ(one.answered, 1);
    EXPECT_EQ(other.answered, 1);
    EXPECT_EQ(log_.read, 1);
    Asked later;
    ask("60/a", later);
    EXPECT_EQ(later.answered, 1);
    EXPECT_EQ(counts("a").loads, 1u);
    EXPECT_EQ(counts("a").bytes, 60);
}

TEST_F(Pool, AModelIsUnloadedOnceNobodyUsesIt) {
    start(0.05);
    Asked holds{.holds = true}, passes;
    ask_and_wait("60/a", holds);
    ask("60/a", passes);
    turns_.run_for(0.3);
    EXPECT_EQ(counts("a").loaded, 1);
    EXPECT_EQ(log_.stopped, 0);
    holds.lease.reset();
    const auto released = Clock::now();
    await_unloads("a", 1);
    EXPECT_GE(Clock::now() - released, std::chrono::milliseconds(50));
    EXPECT_EQ(log_.begun, 1);
    EXPECT_EQ(log_.stopped, 1);
    EXPECT_EQ(log_.destroyed, 1);
    EXPECT_EQ(counts("a").loaded, 0);
    Asked again;
    ask_and_wait("60/a", again);
    EXPECT_EQ(again.answered, 1);
    EXPECT_EQ(counts("a").loads, 2u);
}

TEST_F(Pool, NamedModelsStay) {
    start(0);
    pool_->add("90/named", "named", std::make_shared<FakeModel>(log_, 90));
    Asked one, other;
    ask("90/named", one);
    turns_.run_for(0.05);
    ask_and_wait("20/a", other);
    EXPECT_EQ(other.status, 503);
    EXPECT_EQ(counts("named").loaded, 1);
    EXPECT_EQ(log_.stopped, 0);
    // They leave too little for ever.
    EXPECT_EQ(other.refused.find("try again"), std::string::npos) << other.refused;
    EXPECT_NE(other.refused.find("those of --model stay"), std::string::npos) << other.refused;
}

TEST_F(Pool, WhatFitsNextToTheNamedModelsIsToBeTriedAgain) {
    start(60);
    pool_->add("40/named", "named", std::make_shared<FakeModel>(log_, 40));
    Asked holds{.holds = true}, later, never;
    ask_and_wait("30/a", holds);
    ask_and_wait("60/b", later);
    ask_and_wait("61/c", never);
    EXPECT_NE(later.refused.find("try again later"), std::string::npos) << later.refused;
    EXPECT_EQ(never.refused.find("try again"), std::string::npos) << never.refused;
}

TEST_F(Pool, TheOneThatWasIdleLongestMakesRoom) {
    start(60);
    for (const char* const path : {"40/a", "30/b", "20/c"}) {
        Asked asked;
        ask_and_wait(path, asked);
        turns_.run_for(0.01);
    }
    Asked again, large;
    ask("40/a", again);
    turns_.run_for(0.01);
    ask_and_wait("35/d", large);  // 10 are free, and b's 30
    EXPECT_EQ(large.answered, 1);
    EXPECT_EQ(counts("b").unloads, 1u);
    EXPECT_EQ(counts("a").unloads + counts("c").unloads, 0u);
}

TEST_F(Pool, WhatCannotFitIsRefusedAndNothingIsUnloaded) {
    start(60);
    Asked holds{.holds = true}, idle, large, never;
    ask_and_wait("50/a", holds);
    ask_and_wait("30/b", idle);
    turns_.run_for(0.01);
    ask_and_wait("60/c", large);
    EXPECT_EQ(large.status, 503);
    EXPECT_NE(large.refused.find("try again later"), std::string::npos) << large.refused;
    EXPECT_EQ(counts("b").unloads, 0u);
    holds.lease.reset();
    turns_.run_for(0.01);
    Asked fits;
    ask_and_wait("60/c", fits);
    EXPECT_EQ(fits.answered, 1);
    ask_and_wait("2000000000/d", never);
    EXPECT_EQ(never.status, 503);
    EXPECT_NE(never.refused.find("it needs 2 GB, and of the 0 GB"), std::string::npos)
        << never.refused;
    EXPECT_EQ(never.refused.find("try again"), std::string::npos) << never.refused;
    EXPECT_EQ(counts("d").failures, 0u);
}

TEST_F(Pool, ARequestThatComesWhileItsModelEndsWaitsForTheNextLoad) {
    start(60);
    Asked first, large, again;
    ask_and_wait("60/a", first);
    turns_.run_for(0.01);
    ask("70/b", large);
    turns_.await([&] { return pool_->loaded().empty(); });  // it ends
    ask("60/a", again);
    turns_.await([&] { return large.is_done() && again.is_done(); });
    EXPECT_EQ(large.answered, 1);
    EXPECT_EQ(again.answered, 1);
    EXPECT_EQ(counts("a").loads, 2u);
}

TEST_F(Pool, HalfOfWhatIsLeftIsForTheNextModel) {
    start(60);
    Asked asked;
    ask_and_wait("40/cached", asked);
    EXPECT_EQ(log_.cache_bytes, 30);
}

TEST_F(Pool, ABrokenModelFailsItsRequestsAlone) {
    start(60);
    Asked one, other, unlucky, poor, good;
    ask("1/broken", one);
    ask("1/broken", other);
    ask("1/unlucky", unlucky);
    ask("1/poor", poor);
    ask_and_wait("1/good", good);
    EXPECT_EQ(one.refused, "broken: no weights");
    EXPECT_EQ(other.status, 500);
    EXPECT_EQ(counts("broken").failures, 1u);
    EXPECT_EQ(unlucky.status, 503);
    EXPECT_NE(unlucky.refused.find("needed 7 bytes more"), std::string::npos);
    EXPECT_EQ(poor.status, 503);
    EXPECT_NE(poor.refused.find("'poor': out of memory"), std::string::npos);
    EXPECT_EQ(good.answered, 1);
    EXPECT_EQ(pool_->loaded().size(), 1u);
}

TEST_F(Pool, ARequestThatHasNoMemoryIsToBeTriedAgain) {
    start(60);
    Asked poor{.is_poor = true}, good;
    ask("1/good", poor);
    ask_and_wait("1/good", good);
    EXPECT_EQ(poor.status, 503);
    EXPECT_EQ(poor.refused, "out of memory");
    EXPECT_EQ(good.answered, 1);
}

TEST_F(Pool, AModelOfTheOtherKindIsNotReadForNothing) {
    start(60);
    Asked asked;
    ask_and_wait("1/speech", asked);
    EXPECT_EQ(asked.status, 404);
    EXPECT_NE(asked.refused.find("'speech' is a Whisper model"), std::string::npos);
    EXPECT_EQ(log_.read, 0);
}

TEST_F(Pool, NothingIsReadForClientsThatHaveLeft) {
    start(60);
    log_.is_held = true;
    Asked first, left{.is_wanted = false};
    ask("1/a", first);
    ask("1/b", left);
    log_.is_held = false;
    turns_.await([&] { return first.is_done() && left.is_done(); });
    EXPECT_EQ(left.answered, 0);
    EXPECT_EQ(log_.opened, 1);
}

TEST_F(Pool, TooManyThatWaitAreRefused) {
    start(60, 2);
    log_.is_held = true;
    Asked asked[3];
    for (Asked& one : asked) ask("1/a", one);
    EXPECT_EQ(asked[2].status, 429);
    log_.is_held = false;
    turns_.await([&] { return asked[0].is_done() && asked[1].is_done(); });
}

TEST_F(Pool, AServerThatEndsReadsToTheEndOfOneModel) {
    start(60);
    log_.is_held = true;
    Asked running, queued, late;
    ask("1/a", running);
    turns_.run_for(0.05);
    ask("1/b", queued);
    pool_->drain();
    ask("1/c", late);
    EXPECT_EQ(late.status, 503);
    log_.is_held = false;
    turns_.await([&] { return running.is_done() && queued.is_done(); });
    EXPECT_EQ(running.answered, 1);
    EXPECT_EQ(queued.status, 503);
    EXPECT_EQ(log_.read, 1);
}

TEST(ShareCaches, WhatOneHasNoUseForIsTheOthers) {
    const ModelNeed needs[] = {
        {.least = 10, .most = 1000}, {.least = 5, .most = 20}, {.most = 500}};
    EXPECT_EQ(share_caches(300, needs), (std::vector<int64_t>{140, 20, 140}));
    EXPECT_EQ(share_caches(2000, needs), (std::vector<int64_t>{1000, 20, 500}));
    EXPECT_EQ(share_caches(15, needs), (std::vector<int64_t>{10, 5, 5}));
}

}  // namespace hark::test
