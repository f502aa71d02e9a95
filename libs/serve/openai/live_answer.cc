#include "serve/openai/live_answer.h"

#include <charconv>

#include "serve/audio/audio_service.h"
#include "serve/openai/fields.h"
#include "serve/openai/transcripts.h"

namespace hark::serve {
namespace {

constexpr int kLeastRate = 4000, kMostRate = 192000;

int read_rate(const std::string& value) {
    int rate = 0;
    const char* const end = value.data() + value.size();
    const auto [read, error] = std::from_chars(value.data(), end, rate);
    if (read != end || error != std::errc() || rate < kLeastRate || rate > kMostRate)
        refuse_field("rate", concat("expected samples per second from ", kLeastRate, " to ",
                                    kMostRate, ", found '", value, "'"));
    return rate;
}

}  // namespace

LiveQuery read_live_query(const std::vector<std::pair<std::string, std::string>>& query) {
    LiveQuery live;
    live.options.words.timestamps = true;  // live words have times
    for (const auto& [name, value] : query) {
        if (name == "model")
            live.model = value;
        else if (name == "language" && !value.empty())
            live.options.language = read_language(value);
        else if (name == "rate")
            live.rate = read_rate(value);
        else if (name != "language")
            refuse_field(name, "is not supported");
    }
    if (live.model.empty()) refuse_field("model", "is required");
    return live;
}

void LiveAnswer::start(AudioService& service, ModelLease lease) {
    job_->listener = weak_from_this();
    service.ask_live(job_);
    service_ = &service;
    lease_ = std::move(lease);
    socket_->resume();
}

void LiveAnswer::wake() {
    if (service_) service_->wake();
}

void LiveAnswer::binary(std::string_view bytes) {
    if (is_drained_) return;
    if (has_ended_) {
        left();
        return socket_->close(kClosedPolicy, "samples after `end`");
    }
    job_->add(bytes);
    wake();
}

void LiveAnswer::text(std::string_view text) {
    if (text != "end") {
        left();
        return socket_->close(kClosedPolicy, "expected samples as binary messages, or `end`");
    }
    end_input();
}

void LiveAnswer::end_input() {
    has_ended_ = true;
    job_->end();
    wake();
}

SocketListener::Wants LiveAnswer::wants() const {
    if (!service_) return Wants::pause;
    if (has_ended_) return Wants::nothing;
    return job_->has_room() ? Wants::message : Wants::pause;
}

void LiveAnswer::left() {
    job_->is_cancelled = true;
    wake();
}

void LiveAnswer::drain() {
    is_drained_ = true;
    end_input();
    if (service_) return;
    left();
    ended();
}

void LiveAnswer::ended() {
    if (is_drained_) return socket_->close(kClosedGoingAway, "the server is about to end");
    socket_->close(kClosedNormally, "");
}

void LiveAnswer::failed(const WebError& why) {
    socket_->close(why.status < 500 ? kClosedPolicy : kClosedFailure, why.what());
}

}  // namespace hark::serve
