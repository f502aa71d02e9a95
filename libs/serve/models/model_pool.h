// The models in the server's memory: loaded when a request names them, unloaded when they are idle.
//
//     use() -> queue -> reader's thread: open(), read() -> all requests that wait
//
// A model is read while others answer; one is read at a time. What does not fit in the memory takes
// the place of models that no request uses, the one that was idle longest first.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "serve/models/model_memory.h"
#include "serve/models/served_model.h"
#include "serve/web/web_error.h"
#include "serve/worker.h"

namespace hark::serve {

// A model whose file has been opened, but not read.
struct OpenedModel {
    ModelFacts facts;
    ModelNeed need;
    std::shared_ptr<void> file;  // what read() needs
};

struct ModelPoolOptions {
    int64_t memory = 0;        // bytes of all models
    double keep_seconds = 0;   // for which a model that nobody uses is kept
    int64_t most_waiting = 0;  // requests that wait for models
    // The reader's thread calls these two. Both throw WebError for what requests are told, and
    // failures that are is_out_of_memory().
    std::function<OpenedModel(const std::string& name, const std::string& path)> open;
    std::function<std::shared_ptr<ServedModel>(const std::string& name, const OpenedModel& opened,
                                               int64_t cache_bytes)>
        read;
    // Run a function on the server's thread; the other one that many seconds later.
    std::function<void(std::function<void()>)> post;
    std::function<void(double seconds, std::function<void()>)> post_later;
};

// A request that needs a model.
struct ModelRequest {
    ModelKind kind = ModelKind::text;
    std::function<void(ServedModel&, ModelLease)> use;  // throws WebError: refuse() is called
    std::function<void(const WebError&)> refuse;
    std::function<bool()> is_wanted;  // whether its client is still there
};

// Of all models that had a name.
struct ModelCounts {
    int64_t loaded = 0, bytes = 0;  // now
    uint64_t loads = 0, unloads = 0, failures = 0;
};

// For the server's thread. The constructor and add() may be called before it runs.
class ModelPool {
  public:
    explicit ModelPool(ModelPoolOptions options);
    ~ModelPool();
    ModelPool(const ModelPool&) = delete;

    // A model that stays until the end.
    void add(const std::string& path, const std::string& name, std::shared_ptr<ServedModel> model);
    // Answers the request with the model at `path`, now if it is in memory. Throws what the
    // request's use() does then, and WebError 429 or 503 if it cannot wait.
    void use(const std::string& path, const std::string& name, ModelRequest request);
    // Nothing is read any more but what is being read.
    void drain();

    struct Loaded {
        std::string name, path;
        ServedModel* model = nullptr;
    };
    std::vector<Loaded> loaded() const;  // those that are added first
    std::map<std::string, ModelCounts> counts() const;
    int64_t memory() const { return options_.memory; }

  private:
    using Clock = std::chrono::steady_clock;
    struct Entry : std::enable_shared_from_this<Entry> {
        std::string path, name;
        enum class State { waiting, ready, ending } state = State::waiting;
        std::optional<ModelKind> kind;  // once its file has been opened
        std::optional<OpenedModel> opened;
        std::shared_ptr<ServedModel> model;  // ready and ending
        bool stays = false, has_timer = false;
        int64_t leases = 0;
        int64_t ending_bytes = 0;  // that are given back once it has ended
        Clock::time_point idle_since;
        std::vector<ModelRequest> requests;  // that wait for it

        bool is_idle() const { return state == State::ready && !stays && leases == 0; }
        int64_t bytes() const { return state == State::ready ? model->bytes() : ending_bytes; }
    };

    // Does the next thing that the queue's first model needs, if it can be done now.
    void go_on();
    void open(Entry& entry);
    // Makes room, then reads.
    void place(Entry& entry);
    void read(Entry& entry, int64_t cache_bytes);
    void become_ready(Entry& entry, std::shared_ptr<ServedModel> model);
    void fail(Entry& entry, const WebError& why);
    // Refuses the requests that need a model of the other kind.
    void refuse_others(Entry& entry);
    void unload(Entry& entry);
    void has_ended(Entry& entry);
    void answer(Entry& entry);
    ModelLease lease(Entry& entry);
    void release(Entry& entry);
    void look_later(Entry& entry, double seconds);
    int64_t used() const;
    std::vector<Entry*> idle() const;  // the one that was idle longest first
    // Runs `then` on the server's thread unless the pool has ended.
    void post(std::function<void()> then) const;

    ModelPoolOptions options_;
    std::vector<std::shared_ptr<Entry>> entries_;
    std::deque<Entry*> queue_;
    bool is_busy_ = false, is_draining_ = false;  // busy: with the queue's first
    std::map<std::string, ModelCounts> counts_;   // loads, unloads, failures
    std::shared_ptr<int> alive_ = std::make_shared<int>();
    Worker reader_;
};

}  // namespace hark::serve
