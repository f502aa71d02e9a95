#include "serve/metrics.h"

#include <algorithm>

#include "core/error.h"

namespace hark::serve {

void Histogram::add(double value) {
    const auto place = std::lower_bound(bounds_.begin(), bounds_.end(), value) - bounds_.begin();
    ++counts_[static_cast<size_t>(place)];
    sum_ += value;
}

void Histogram::write(const std::string& name, MetricsText& out) const {
    uint64_t total = 0;
    for (size_t i = 0; i < counts_.size(); ++i) {
        total += counts_[i];
        const std::string bound = i < bounds_.size() ? concat(bounds_[i]) : "+Inf";
        out.add(name, "histogram", static_cast<double>(total), metric_label("le", bound),
                "_bucket");
    }
    out.add(name, "histogram", sum_, "", "_sum");
    out.add(name, "histogram", static_cast<double>(total), "", "_count");
}

void TextMetrics::write(MetricsText& out) const {
    const auto used = static_cast<double>(engine.blocks - engine.free_blocks);
    const auto gauge = [&](const char* name, auto value) {
        out.add(name, "gauge", static_cast<double>(value));
    };
    const auto counter = [&](const char* name, auto value) {
        out.add(name, "counter", static_cast<double>(value));
    };
    gauge("num_requests_running", engine.running);
    gauge("num_requests_waiting", engine.waiting + preparing);
    gauge("kv_cache_usage_perc", engine.blocks > 0 ? used / static_cast<double>(engine.blocks) : 0);
    gauge("kv_cache_memory_bytes", engine.cache_bytes);
    counter("num_preemptions_total", engine.preemptions);
    counter("prefix_cache_queries_total", prompt_tokens);
    counter("prefix_cache_hits_total", cached_tokens);
    counter("prompt_tokens_total", prompt_tokens);
    counter("generation_tokens_total", generated_tokens);
    counter("request_cancelled_total", cancelled);
    counter("request_failure_total", failed);
    for (const auto& [reason, count] : finished)
        out.add("request_success_total", "counter", static_cast<double>(count),
                metric_label("finished_reason", reason));
    seconds_to_first_token.write("time_to_first_token_seconds", out);
    seconds_between_tokens.write("inter_token_latency_seconds", out);
    seconds_in_all.write("e2e_request_latency_seconds", out);
    seconds_in_queue.write("request_queue_time_seconds", out);
    seconds_of_prompt.write("request_prefill_time_seconds", out);
    seconds_of_answer.write("request_decode_time_seconds", out);
    tokens_of_prompt.write("request_prompt_tokens", out);
    tokens_of_answer.write("request_generation_tokens", out);
}

void AudioMetrics::write(MetricsText& out) const {
    out.add("audio_requests_running", "gauge", static_cast<double>(running));
    out.add("audio_requests_waiting", "gauge", static_cast<double>(waiting));
    out.add("audio_live_sessions", "gauge", static_cast<double>(live));
    out.add("audio_success_total", "counter", static_cast<double>(finished));
    out.add("audio_failure_total", "counter", static_cast<double>(failed));
    out.add("audio_seconds_total", "counter", audio_seconds);
    out.add("audio_busy_seconds_total", "counter", busy_seconds);
}

}  // namespace hark::serve
