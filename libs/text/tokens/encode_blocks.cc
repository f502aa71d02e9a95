#include "text/tokens/encode_blocks.h"

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>

#include "core/profile/profile.h"

namespace hark {
namespace {

struct Task {
    TextBlock block;
    EncodedBlock encoded;
    std::exception_ptr failure;
    bool taken = false, done = false;
};

EncodedBlock encoded(TextBlock block, Tokenizer::Encoder& encoder,
                     const EncodeBlocksOptions& options) {
    const ProfileSpan span("tokenize");
    EncodedBlock out;
    read_json_lines(block, options.key, out.problems);
    out.bytes = block.text.size();
    out.ids.reserve(block.text.size() / 3);
    for (const TextBlock::Part& part : block.parts) {
        if (part.begins && options.separator) out.ids.push_back(*options.separator);
        if (part.end > part.begin) encoder.encode(block.text_of(part), out.ids, part.begins);
        if (part.ends) out.ends.push_back(out.ids.size());
    }
    return out;
}

}  // namespace

struct BlockEncoder::Shared {
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<std::shared_ptr<Task>> tasks;  // in the blocks' order
    bool stop = false;

    std::shared_ptr<Task> take() {
        std::unique_lock lock(mutex);
        std::shared_ptr<Task> found;
        changed.wait(lock, [&] {
            for (const auto& task : tasks) {
                if (task->taken) continue;
                found = task;
                break;
            }
            return stop || found;
        });
        if (stop) return nullptr;
        found->taken = true;
        return found;
    }
};

BlockEncoder::BlockEncoder(const Tokenizer& tokenizer, const EncodeBlocksOptions& options,
                           Next next)
    : options_(options), next_(std::move(next)), shared_(std::make_shared<Shared>()) {
    for (int i = 0; i < options.jobs; ++i)
        threads_.emplace_back([this, &tokenizer] {
            const auto encoder = tokenizer.encoder();
            while (const auto task = shared_->take()) {
                try {
                    task->encoded = encoded(std::move(task->block), *encoder, options_);
                } catch (...) {
                    task->failure = std::current_exception();
                }
                const std::lock_guard lock(shared_->mutex);
                task->done = true;
                shared_->changed.notify_all();
            }
        });
}

BlockEncoder::~BlockEncoder() {
    {
        const std::lock_guard lock(shared_->mutex);
        shared_->stop = true;
        shared_->changed.notify_all();
    }
    for (std::thread& thread : threads_) thread.join();
}

std::optional<EncodedBlock> BlockEncoder::next() {
    Shared& shared = *shared_;
    while (!ended_ && shared.tasks.size() < 2 * threads_.size()) {
        auto task = std::make_shared<Task>();
        std::optional<TextBlock> block = next_();
        ended_ = !block;
        if (!block) break;
        task->block = std::move(*block);
        const std::lock_guard lock(shared.mutex);
        shared.tasks.push_back(std::move(task));
        shared.changed.notify_all();
    }
    std::unique_lock lock(shared.mutex);
    if (shared.tasks.empty()) return std::nullopt;
    const std::shared_ptr<Task> first = shared.tasks.front();
    shared.changed.wait(lock, [&] { return first->done; });
    shared.tasks.pop_front();
    lock.unlock();
    if (first->failure) std::rethrow_exception(first->failure);
    return std::move(first->encoded);
}

}  // namespace hark
