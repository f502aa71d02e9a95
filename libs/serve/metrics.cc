#include "serve/metrics.h"

#include <algorithm>

#include "core/error.h"

namespace hark::serve {
namespace {

// A label's value with the escapes of the format.
std::string label_of(const std::string& model) {
    std::string value;
    for (const char c : model) {
        if (c == '\\' || c == '"') value += '\\';
        value += c == '\n' ? ' ' : c;
    }
    return concat("model_name=\"", value, "\"");
}

template <class Number>
void write_value(const char* name, const char* type, const std::string& labels, Number value,
                 std::string& out) {
    out += concat("# TYPE hark_", name, " ", type, "\nhark_", name, "{", labels, "} ", value, "\n");
}

}  // namespace

void Histogram::add(double value) {
    const auto place = std::lower_bound(bounds_.begin(), bounds_.end(), value) - bounds_.begin();
    ++counts_[static_cast<size_t>(place)];
    sum_ += value;
}

void Histogram::write(std::string_view name, std::string_view labels, std::string& out) const {
    out += concat("# TYPE hark_", name, " histogram\n");
    uint64_t total = 0;
    for (size_t i = 0; i < counts_.size(); ++i) {
        total += counts_[i];
        const std::string bound = i < bounds_.size() ? concat(bounds_[i]) : "+Inf";
        out += concat("hark_", name, "_bucket{", labels, ",le=\"", bound, "\"} ", total, "\n");
    }
    out += concat("hark_", name, "_sum{", labels, "} ", sum_, "\n");
    out += concat("hark_", name, "_count{", labels, "} ", total, "\n");
}

void TextMetrics::write(const std::string& model, std::string& out) const {
    const std::string labels = label_of(model);
    const auto used = static_cast<double>(engine.blocks - engine.free_blocks);
    const double share = engine.blocks > 0 ? used / static_cast<double>(engine.blocks) : 0;
    write_value("num_requests_running", "gauge", labels, engine.running, out);
    write_value("num_requests_waiting", "gauge", labels, engine.waiting + preparing, out);
    write_value("kv_cache_usage_perc", "gauge", labels, share, out);
    write_value("num_preemptions_total", "counter", labels, engine.preemptions, out);
    write_value("prefix_cache_queries_total", "counter", labels, prompt_tokens, out);
    write_value("prefix_cache_hits_total", "counter", labels, cached_tokens, out);
    write_value("prompt_tokens_total", "counter", labels, prompt_tokens, out);
    write_value("generation_tokens_total", "counter", labels, generated_tokens, out);
    write_value("request_cancelled_total", "counter", labels, cancelled, out);
    out += "# TYPE hark_request_success_total counter\n";
    for (const auto& [reason, count] : finished)
        out += concat("hark_request_success_total{", labels, ",finished_reason=\"", reason, "\"} ",
                      count, "\n");
    seconds_to_first_token.write("time_to_first_token_seconds", labels, out);
    seconds_between_tokens.write("inter_token_latency_seconds", labels, out);
    seconds_in_all.write("e2e_request_latency_seconds", labels, out);
}

void AudioMetrics::write(const std::string& model, std::string& out) const {
    const std::string labels = label_of(model);
    write_value("audio_requests_running", "gauge", labels, running, out);
    write_value("audio_requests_waiting", "gauge", labels, waiting, out);
    write_value("audio_success_total", "counter", labels, finished, out);
    write_value("audio_failure_total", "counter", labels, failed, out);
    write_value("audio_seconds_total", "counter", labels, audio_seconds, out);
    write_value("audio_busy_seconds_total", "counter", labels, busy_seconds, out);
}

}  // namespace hark::serve
