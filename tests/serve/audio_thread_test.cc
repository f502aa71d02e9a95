// The turns of a model's thread: who is ready has an equal share of its time.
#include "serve/audio/audio_thread.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace hark::test {
namespace {

using namespace hark::serve;
using Milliseconds = std::chrono::milliseconds;

// Sleeps in each of its steps.
class Sleeper : public AudioTask {
  public:
    Sleeper(int step_ms, double shares, std::atomic<int>& total_ms, std::atomic<bool>& is_over)
        : step_ms_(step_ms), shares_(shares), total_ms_(total_ms), is_over_(is_over) {}

    bool is_ready() const override { return true; }
    double shares() const override { return shares_; }
    bool step() override {
        if (is_over_) return false;
        std::this_thread::sleep_for(Milliseconds(step_ms_));
        total_ms_ += step_ms_;
        return true;
    }

  private:
    int step_ms_;
    double shares_;
    std::atomic<int>& total_ms_;
    std::atomic<bool>& is_over_;
};

TEST(AudioThread, TimeIsSharedBySharesNotBySteps) {
    std::atomic<int> shorter = 0, longer = 0, many = 0, late = 0;
    std::atomic<bool> is_over = false;
    AudioThread thread;
    thread.add(std::make_shared<Sleeper>(2, 1, shorter, is_over));
    thread.add(std::make_shared<Sleeper>(20, 1, longer, is_over));
    thread.add(std::make_shared<Sleeper>(5, 2, many, is_over));
    while (many < 400) std::this_thread::sleep_for(Milliseconds(1));
    const double of_shorter = shorter, of_longer = longer;
    EXPECT_NEAR(of_shorter, 200, 100);
    EXPECT_NEAR(of_longer, 200, 100);
    // A new one has no claim to the time before.
    thread.add(std::make_shared<Sleeper>(2, 1, late, is_over));
    while (late < 100) std::this_thread::sleep_for(Milliseconds(1));
    EXPECT_GE(longer, of_longer + 40);
    is_over = true;
}

// Has one step, and a successor.
class Visitor : public AudioTask {
  public:
    Visitor(AudioThread& thread, std::atomic<int>& total_ms, std::atomic<bool>& is_over)
        : thread_(thread), total_ms_(total_ms), is_over_(is_over) {}

    bool is_ready() const override { return true; }
    bool step() override {
        std::this_thread::sleep_for(Milliseconds(5));
        total_ms_ += 5;
        if (!is_over_) thread_.add(std::make_shared<Visitor>(thread_, total_ms_, is_over_));
        return false;
    }

  private:
    AudioThread& thread_;
    std::atomic<int>& total_ms_;
    std::atomic<bool>& is_over_;
};

TEST(AudioThread, TasksThatComeAndGoDoNotKeepOthersFromTheirShare) {
    std::atomic<int> stays = 0, visitors = 0;
    std::atomic<bool> is_over = false;
    AudioThread thread;
    thread.add(std::make_shared<Sleeper>(2, 1, stays, is_over));
    for (int i = 0; i < 2; ++i) thread.add(std::make_shared<Visitor>(thread, visitors, is_over));
    while (visitors < 400) std::this_thread::sleep_for(Milliseconds(1));
    EXPECT_NEAR(stays, 200, 100);
    is_over = true;
}

// Has one step after each time that it is told of something.
class Waiter : public AudioTask {
  public:
    Waiter(std::atomic<int>& news, std::atomic<int>& steps, std::atomic<bool>& is_destroyed)
        : news_(news), steps_(steps), is_destroyed_(is_destroyed) {}
    ~Waiter() override { is_destroyed_ = true; }

    bool is_ready() const override { return steps_ < news_; }
    bool step() override { return ++steps_ < 3; }

  private:
    std::atomic<int>&news_, &steps_;
    std::atomic<bool>& is_destroyed_;
};

TEST(AudioThread, ATaskWaitsUntilItIsReadyAndGoesAfterItsLastStep) {
    std::atomic<int> news = 0, steps = 0;
    std::atomic<bool> is_destroyed = false;
    AudioThread thread;
    thread.add(std::make_shared<Waiter>(news, steps, is_destroyed));
    for (int i = 1; i <= 3; ++i) {
        EXPECT_FALSE(is_destroyed);
        ++news;
        thread.wake();
        while (steps < i) std::this_thread::yield();
        EXPECT_EQ(steps, i);
    }
    while (!is_destroyed) std::this_thread::yield();
}

}  // namespace
}  // namespace hark::test
