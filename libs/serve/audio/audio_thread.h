// The thread of a Whisper model, which its recordings and live sessions share.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace hark::serve {

// What takes turns on the thread. It is destroyed there.
class AudioTask {
  public:
    virtual ~AudioTask() = default;

    // Whether step() has something to do. Must not wait.
    virtual bool is_ready() const = 0;
    // Does a part of the work. Returns false after the last one. Throws nothing.
    virtual bool step() = 0;
    // How many of the model's users it serves: it gets that many shares of the time.
    virtual double shares() const { return 1; }
};

class AudioThread {
  public:
    AudioThread();
    ~AudioThread() { stop(); }
    AudioThread(const AudioThread&) = delete;

    // The rest may be called from any thread.

    // Ends the thread after the step that runs, and destroys the tasks there.
    void stop();

    // From now on the task has its turns: the next one is that of the task that is ready and has
    // had the least time, by its shares. A task that was not ready has no claim to the time before.
    void add(std::shared_ptr<AudioTask> task);
    // A task may have become ready.
    void wake();

  private:
    struct Entry {
        std::shared_ptr<AudioTask> task;
        double seconds = 0;  // of its steps, by its shares
        double shares = 1;   // at its turn
        bool has_waited = true;
    };

    void run();
    Entry* next();  // nullptr: none is ready. Sets ready_shares_

    std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<Entry> tasks_;  // of the thread
    std::vector<std::shared_ptr<AudioTask>> added_;
    bool is_awake_ = false, is_closed_ = false;
    double now_ = 0;           // seconds that one share has had: a new entry begins with them
    double ready_shares_ = 0;  // of the entries that are ready
    std::thread thread_;
};

}  // namespace hark::serve
