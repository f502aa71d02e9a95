// The thread of a language model continues after a pass that failed.
#include "serve/text/engine_thread.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <mutex>

#include "gpt/families/model_file.h"
#include "serve/text/text_job.h"
#include "serve/text/text_model.h"
#include "support/expect.h"
#include "support/process.h"

namespace hark::test {
namespace {

using namespace hark::serve;

// The texts, and what ended the request.
class Answers : public TextListener {
  public:
    void prepared(const TextJob&) override {}
    void scored(const TextJob&, const gpt::Completion&) override {}
    void part(const TextJob&, int64_t, const gpt::Completion& part) override { text += part.text; }
    void ended(const TextJob&, int64_t, const gpt::Completion&) override { has_ended = true; }
    void failed(const WebError& why) override { error = why; }

    std::string text;
    bool has_ended = false;
    std::optional<WebError> error;
};

class EngineThreads : public testing::Test {
  protected:
    static constexpr double kKeepSeconds = 0.5;

    // What the thread tells is run by it, one at a time.
    EngineThreads()
        : model_(gpt::open_model(source_dir() / "models/gpt-demo"), options(), console_),
          thread_(model_, kKeepSeconds,
                  {.post =
                       [this](const std::function<void()>& work) {
                           const std::lock_guard lock(mutex_);
                           work();
                       },
                   .counts =
                       [this](const gpt::EngineCounts& counts) {
                           cache_bytes_ = counts.cache_bytes;
                           most_cache_bytes_ = std::max(most_cache_bytes_, counts.cache_bytes);
                       },
                   .broken = [this](const std::string& why) { broken_ = why; },
                   .over = [this](const auto&) { ++over_; }}) {}
    static TextModelOptions options() {
        TextModelOptions options;
        options.compute.device = "cpu";
        return options;
    }
    std::shared_ptr<TextJob> job(const std::shared_ptr<Answers>& listener) {
        auto job = std::make_shared<TextJob>();
        job->listener = listener;
        job->tokens = model_.tokenizer().encode("Once upon a time", {});
        job->options.sampler.temperature = 0;
        job->options.max_tokens = 8;
        job->plan = model_.planner().plan(job->tokens.size(), job->options);
        job->sampler = model_.planner().sampler(job->options);
        return job;
    }
    void await(int over) {
        const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
        const auto is_broken = [&] {
            const std::lock_guard lock(mutex_);
            return !broken_.empty();
        };
        while (over_ < over && !is_broken() && std::chrono::steady_clock::now() < end)
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        const std::lock_guard lock(mutex_);
        EXPECT_EQ(over_, over);
        EXPECT_EQ(broken_, "");
    }

    Console console_{"test"};
    TextModel model_;
    std::mutex mutex_;
    std::string broken_;
    std::atomic<int> over_ = 0;
    std::atomic<int64_t> cache_bytes_ = 0;
    int64_t most_cache_bytes_ = 0;
    EngineThread thread_;
};

TEST_F(EngineThreads, AFailedPassEndsItsRequestsAlone) {
    const auto before = std::make_shared<Answers>(), wrong = std::make_shared<Answers>(),
               after = std::make_shared<Answers>();
    const auto first = job(before), failing = job(wrong), last = job(after);
    failing->tokens[1] = 1 << 30;  // the model's embedding throws
    thread_.add(first);
    thread_.add(failing);
    await(2);
    thread_.add(last);
    await(3);
    ASSERT_TRUE(wrong->error);
    EXPECT_EQ(wrong->error->status, 500);
    expect_contains(wrong->error->what(), "outside the vocabulary");
    EXPECT_FALSE(wrong->has_ended);
    for (const auto& answers : {before, after}) {
        EXPECT_FALSE(answers->error);
        EXPECT_TRUE(answers->has_ended);
        EXPECT_FALSE(answers->text.empty());
    }
    EXPECT_EQ(before->text, after->text);
    thread_.stop();
}

// After kKeepSeconds without a request the memory of keys and values goes, and comes again.
TEST_F(EngineThreads, MemoryIsGivenBackWhenNobodyAsks) {
    const auto await_return = [&] {
        const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
        while (cache_bytes_ > 0 && std::chrono::steady_clock::now() < end)
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        EXPECT_EQ(cache_bytes_, 0);
    };
    const auto first = std::make_shared<Answers>(), second = std::make_shared<Answers>();
    const auto asked = job(first), again = job(second);
    thread_.add(asked);
    await(1);
    await_return();
    thread_.add(again);
    await(2);
    await_return();
    thread_.stop();
    EXPECT_GT(most_cache_bytes_, 0);
    EXPECT_EQ(first->text, second->text);
}

TEST_F(EngineThreads, ARequestThatCannotBeEmbeddedFailsAlone) {
    std::promise<std::optional<WebError>> wrong, right;
    const auto tell = [](auto& promise) {
        return [&promise](const EngineThread::Vectors&, const std::optional<WebError>& why) {
            promise.set_value(why);
        };
    };
    thread_.embed({{1 << 30}}, 0, tell(wrong));
    thread_.embed({{1}}, 0, tell(right));
    const std::optional<WebError> why = wrong.get_future().get();
    ASSERT_TRUE(why);
    EXPECT_EQ(why->status, 500);
    EXPECT_FALSE(right.get_future().get());
    thread_.stop();
}

TEST(WebErrorOf, FailuresHaveTheStatusOfTheirKind) {
    EXPECT_EQ(web_error_of(WebError(429, "later")).status, 429);
    EXPECT_EQ(web_error_of(Error("wrong")).status, 500);
    EXPECT_EQ(web_error_of(Error("wrong"), 400).status, 400);
    EXPECT_EQ(web_error_of(std::logic_error("wrong"), 400).status, 500);
    for (const WebError& error :
         {web_error_of(OutOfMemory("needed 7"), 400), web_error_of(std::bad_alloc(), 400)}) {
        EXPECT_EQ(error.status, 503);
        EXPECT_EQ(error.code, "insufficient_memory");
    }
    EXPECT_STREQ(web_error_of(std::bad_alloc()).what(), "out of memory");
}

}  // namespace
}  // namespace hark::test
