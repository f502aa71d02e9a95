#include "serve/models/model_pool.h"

#include <algorithm>
#include <utility>

#include "core/error.h"

namespace hark::serve {
namespace {

WebError ending() { return WebError(503, "the server is about to end"); }

WebError no_memory(const std::string& name, const std::string& why) {
    return WebError(503, concat("no memory for the model '", name, "': ", why), "model",
                    "insufficient_memory");
}

WebError other_kind(const std::string& name, ModelKind kind) {
    return WebError(404,
                    concat("'", name, "' is a ", kind == ModelKind::text ? "language" : "Whisper",
                           " model, which does not answer here; /v1/models has the list"),
                    "model", "model_not_found");
}

// What a load comes to: its result, or why there is none.
template <class Result>
struct Outcome {
    Result result;
    std::optional<WebError> why;
};

template <class Result, class Work>
Outcome<Result> outcome_of(const std::string& name, const Work& work) {
    try {
        return {work(), std::nullopt};
    } catch (const std::exception& why) {
        if (is_out_of_memory(why)) return {{}, no_memory(name, failure_text(why))};
        return {{}, web_error_of(why)};
    }
}

}  // namespace

ModelPool::ModelPool(ModelPoolOptions options) : options_(std::move(options)) {}

ModelPool::~ModelPool() { alive_.reset(); }

void ModelPool::post(std::function<void()> then) const {
    options_.post([alive = std::weak_ptr<int>(alive_), then = std::move(then)] {
        if (!alive.expired()) then();
    });
}

void ModelPool::add(const std::string& path, const std::string& name,
                    std::shared_ptr<ServedModel> model) {
    auto entry = std::make_shared<Entry>();
    entry->path = path;
    entry->name = name;
    entry->state = Entry::State::ready;
    entry->kind = model->kind();
    entry->model = std::move(model);
    entry->stays = true;
    ++counts_[name].loads;
    entries_.push_back(std::move(entry));
}

void ModelPool::use(const std::string& path, const std::string& name, ModelRequest request) {
    const auto found =
        std::find_if(entries_.begin(), entries_.end(),
                     [&](const std::shared_ptr<Entry>& entry) { return entry->path == path; });
    if (found != entries_.end()) {
        Entry& entry = **found;
        if (entry.kind && entry.kind != request.kind) throw other_kind(entry.name, *entry.kind);
        if (entry.state == Entry::State::ready) return request.use(*entry.model, lease(entry));
    }
    if (is_draining_) throw ending();
    int64_t waiting = 0;
    for (const auto& entry : entries_) waiting += std::ssize(entry->requests);
    if (waiting >= options_.most_waiting)
        throw WebError(429, "too many requests wait for models; try again later", "",
                       "rate_limit_exceeded");
    if (found != entries_.end()) {
        (*found)->requests.push_back(std::move(request));
        return;
    }
    auto entry = std::make_shared<Entry>();
    entry->path = path;
    entry->name = name;
    entry->requests.push_back(std::move(request));
    queue_.push_back(entry.get());
    entries_.push_back(std::move(entry));
    go_on();
}

void ModelPool::go_on() {
    if (is_busy_ || queue_.empty()) return;
    Entry& entry = *queue_.front();
    const bool is_wanted =
        std::any_of(entry.requests.begin(), entry.requests.end(),
                    [](const ModelRequest& request) { return request.is_wanted(); });
    if (is_draining_ || !is_wanted) return fail(entry, ending());
    entry.opened ? place(entry) : open(entry);
}

void ModelPool::open(Entry& entry) {
    is_busy_ = true;
    reader_.add([this, &entry, name = entry.name, path = entry.path] {
        const auto opened =
            outcome_of<OpenedModel>(name, [&] { return options_.open(name, path); });
        post([this, &entry, opened] {
            is_busy_ = false;
            if (opened.why) return fail(entry, *opened.why);
            entry.opened = opened.result;
            entry.kind = opened.result.facts.kind;
            refuse_others(entry);
            go_on();
        });
    });
}

int64_t ModelPool::used() const {
    int64_t bytes = 0;
    for (const auto& entry : entries_) bytes += entry->bytes();
    return bytes;
}

std::vector<ModelPool::Entry*> ModelPool::idle() const {
    std::vector<Entry*> idle;
    for (const auto& entry : entries_)
        if (entry->is_idle()) idle.push_back(entry.get());
    std::sort(idle.begin(), idle.end(), [](const Entry* one, const Entry* other) {
        return one->idle_since < other->idle_since;
    });
    return idle;
}

void ModelPool::place(Entry& entry) {
    const ModelNeed& need = entry.opened->need;
    const int64_t free = options_.memory - used(), missing = need.smallest() - free;
    if (missing <= 0) {
        // Half of what is left is for the next model.
        const int64_t rest = free - need.weights - need.scratch;
        return read(entry, std::min(std::max(rest / 2, need.least), need.most));
    }
    int64_t ending = 0, reclaimable = 0;
    for (const auto& one : entries_)
        if (one->state == Entry::State::ending) ending += one->bytes();
    if (ending >= missing) return;  // has_ended() continues
    const std::vector<Entry*> idle_ones = idle();
    for (const Entry* const one : idle_ones) reclaimable += one->bytes();
    if (ending + reclaimable < missing) {
        int64_t named = 0;
        for (const auto& one : entries_)
            if (one->stays) named += one->bytes();
        const bool never = need.smallest() > options_.memory - named;
        return fail(
            entry,
            no_memory(entry.name, concat("it needs ", gigabytes(need.smallest()), ", and of the ",
                                         gigabytes(options_.memory), " for all models ",
                                         gigabytes(std::max<int64_t>(free, 0)), " are free",
                                         !never      ? "; others are in use, try again later"
                                         : named > 0 ? "; those of --model stay"
                                                     : "")));
    }
    for (Entry* const one : idle_ones) {
        if (ending >= missing) break;
        ending += one->bytes();
        unload(*one);
    }
}

void ModelPool::read(Entry& entry, int64_t cache_bytes) {
    is_busy_ = true;
    reader_.add(
        [this, &entry, name = entry.name, opened = *std::exchange(entry.opened, {}), cache_bytes] {
            const auto model = outcome_of<std::shared_ptr<ServedModel>>(
                name, [&] { return options_.read(name, opened, cache_bytes); });
            post([this, &entry, model] {
                is_busy_ = false;
                model.why ? fail(entry, *model.why) : become_ready(entry, model.result);
            });
        });
}

void ModelPool::become_ready(Entry& entry, std::shared_ptr<ServedModel> model) {
    queue_.pop_front();
    entry.model = std::move(model);
    entry.model->begin();
    entry.state = Entry::State::ready;
    ++counts_[entry.name].loads;
    answer(entry);
    go_on();
}

void ModelPool::answer(Entry& entry) {
    const ModelLease until_all_have_begun = lease(entry);
    for (ModelRequest& request : std::exchange(entry.requests, {})) try {
            if (request.is_wanted()) request.use(*entry.model, lease(entry));
        } catch (const std::exception& why) {
            request.refuse(web_error_of(why));
        }
}

void ModelPool::refuse_others(Entry& entry) {
    const auto others = std::stable_partition(
        entry.requests.begin(), entry.requests.end(),
        [&](const ModelRequest& request) { return request.kind == entry.kind; });
    const std::vector<ModelRequest> refused(others, entry.requests.end());
    entry.requests.erase(others, entry.requests.end());
    for (const ModelRequest& request : refused) request.refuse(other_kind(entry.name, *entry.kind));
}

void ModelPool::fail(Entry& entry, const WebError& why) {
    if (!is_draining_ && why.status != 503) ++counts_[entry.name].failures;
    const std::vector<ModelRequest> requests = std::move(entry.requests);
    std::erase(queue_, &entry);
    std::erase_if(entries_, [&](const auto& one) { return one.get() == &entry; });
    for (const ModelRequest& request : requests) request.refuse(why);
    go_on();
}

void ModelPool::drain() {
    is_draining_ = true;
    while (std::ssize(queue_) > (is_busy_ ? 1 : 0)) fail(*queue_.back(), ending());
}

ModelLease ModelPool::lease(Entry& entry) {
    ++entry.leases;
    const auto later = [post = options_.post, alive = std::weak_ptr<int>(alive_), this,
                        &entry](void*) {
        if (alive.expired()) return;
        post([alive, this, &entry] {
            if (!alive.expired()) release(entry);
        });
    };
    return {nullptr, later};
}

void ModelPool::release(Entry& entry) {
    if (--entry.leases > 0 || entry.stays) return;
    entry.idle_since = Clock::now();
    look_later(entry, options_.keep_seconds);
}

// One timer is enough for a model, however many requests it answers.
void ModelPool::look_later(Entry& entry, double seconds) {
    if (std::exchange(entry.has_timer, true)) return;
    options_.post_later(
        seconds, [this, alive = std::weak_ptr<int>(alive_), weak = entry.weak_from_this()] {
            const auto still = weak.lock();
            if (alive.expired() || !still) return;
            still->has_timer = false;
            if (!still->is_idle()) return;
            const std::chrono::duration<double> idle = Clock::now() - still->idle_since;
            const double left = options_.keep_seconds - idle.count();
            left > 0 ? look_later(*still, left) : unload(*still);
        });
}

// First its threads end, then what they have posted runs, then its memory is given back.
void ModelPool::unload(Entry& entry) {
    entry.ending_bytes = entry.bytes();
    entry.state = Entry::State::ending;
    reader_.add([this, &entry, model = entry.model.get()] {
        model->stop();
        post([this, &entry] {
            reader_.add([this, &entry, model = std::exchange(entry.model, nullptr)]() mutable {
                model.reset();
                post([this, &entry] { has_ended(entry); });
            });
        });
    });
}

void ModelPool::has_ended(Entry& entry) {
    ++counts_[entry.name].unloads;
    entry.ending_bytes = 0;
    if (entry.requests.empty()) {
        std::erase_if(entries_, [&](const auto& one) { return one.get() == &entry; });
    } else {  // somebody has asked for it meanwhile
        entry.state = Entry::State::waiting;
        queue_.push_back(&entry);
    }
    go_on();
}

std::vector<ModelPool::Loaded> ModelPool::loaded() const {
    std::vector<Loaded> loaded;
    for (const auto& entry : entries_)
        if (entry->state == Entry::State::ready)
            loaded.push_back({entry->name, entry->path, entry->model.get()});
    return loaded;
}

std::map<std::string, ModelCounts> ModelPool::counts() const {
    std::map<std::string, ModelCounts> counts = counts_;
    for (const Loaded& one : loaded()) {
        ++counts[one.name].loaded;
        counts[one.name].bytes += one.model->bytes();
    }
    return counts;
}

}  // namespace hark::serve
