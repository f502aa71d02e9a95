#include "core/error.h"
#include "text/constrain/token_masks.h"

namespace hark {

void TokenMasks::prepare(State state) {
    {
        const std::lock_guard lock(mutex_);
        if (masks_.contains(state)) return;
    }
    const std::lock_guard lock(wanted_mutex_);
    wanted_.push_back(state);
    if (!worker_.joinable())
        worker_ = std::jthread([this](std::stop_token stop) { prepare_masks(std::move(stop)); });
    wanted_changed_.notify_one();
}

void TokenMasks::prepare_masks(std::stop_token stop) {
    while (!stop.stop_requested()) {
        std::unique_lock wanted(wanted_mutex_);
        if (!wanted_changed_.wait(wanted, stop, [&] { return !wanted_.empty(); })) return;
        const State state = wanted_.back();
        wanted_.pop_back();
        wanted.unlock();
        try {
            const std::lock_guard lock(mutex_);
            known_mask(state);
        } catch (const Error&) {
            // Who asks for the mask gets the error again.
        }
    }
}

}  // namespace hark
