#include "operations/advice/report.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "core/error.h"
#include "operations/doctor/finding.h"

namespace hark::advice {
namespace {

using doctor::figure;
using doctor::size_text;

constexpr double kTokens = 1e6;      // that costs of language models are of
constexpr double kShownShare = 0.1;  // of a time: smaller second reasons are left out

// Columns of text, two spaces between them. Columns that have no value are left out.
std::string table(std::vector<std::vector<std::string>> rows) {
    for (size_t i = rows.front().size(); i-- > 0;) {
        const bool has_value = std::any_of(rows.begin() + 1, rows.end(), [&](const auto& row) {
            return !row[i].empty() && row[i] != "-";
        });
        if (!has_value)
            for (std::vector<std::string>& row : rows)
                row.erase(row.begin() + static_cast<std::ptrdiff_t>(i));
    }
    std::vector<size_t> widths(rows.front().size());
    for (const std::vector<std::string>& row : rows)
        for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
    std::string text;
    for (const std::vector<std::string>& row : rows) {
        std::string line;
        for (size_t i = 0; i < row.size(); ++i)
            line += row[i] + std::string(widths[i] - row[i].size() + 2, ' ');
        text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
    }
    return text;
}

// "35.2 s", "12.4 min", "3.7 h"
std::string time_text(double seconds) {
    if (seconds < 99.5) return figure(seconds) + " s";
    if (seconds < 5970) return figure(seconds / 60) + " min";
    return figure(seconds / 3600) + " h";
}

std::string or_dash(const std::optional<double>& value, double scale = 1) {
    return value ? figure(*value * scale) : "-";
}

// The longest terms and their shares: "bytes of weights 70%, latency of kernels 20%".
std::string bound_text(const std::vector<Term>& terms) {
    const double all = total_ms(terms);
    std::string text;
    for (size_t i = 0; i < std::min<size_t>(terms.size(), 2); ++i) {
        const double share = terms[i].ms / all;
        if (i > 0 && share < kShownShare) break;
        text += concat(i > 0 ? ", " : "", terms[i].bound, " ", std::lround(100 * share), "%");
    }
    return text;
}

double ms_of(const Prediction& prediction, const std::string& stage) {
    for (const Stage& one : prediction.stages)
        if (one.name == stage) return one.ms;
    fail("internal error: no stage ", stage);
}

std::string amount_text(const Report& report) {
    return report.shape.is_whisper() ? concat(report.audio_hours, " h") : "1M tokens";
}
const char* speed_title(const Report& report) {
    return report.shape.is_whisper() ? "x real time" : "tokens/s";
}

std::string heading(const Report& report) {
    const Machine& machine = report.analysis.machine;
    const Load& load = report.analysis.load;
    const double peak = machine.is_gpu ? machine.half_tflops : machine.f32_tflops;
    const std::string speed = machine.is_gpu ? concat(figure(peak), " TFLOP/s")
                                             : concat(figure(peak * 1e3), " GFLOP/s of f32");
    const std::string work =
        report.shape.is_whisper()
            ? concat(load.tokens_per_window, " tokens per window of 30 s")
            : concat("prompts of ", load.prompt_tokens, " tokens, answers of ", load.max_tokens);
    return concat(report.shape.name(), " (auto: ", report.shape.stored(), ") on ", machine.name,
                  ", ", machine.is_measured ? "measured" : "expected", ": ", speed, ", ",
                  figure(machine.gb_per_s), " GB/s, ", size_text(machine.memory_bytes), "; ", work,
                  "\n");
}

std::string memory_text(const Report& report) {
    const char* item = report.shape.is_whisper() ? "per window" : "per text";
    std::vector<std::vector<std::string>> rows = {{"memory", "weights", "fixed", item, "fit"}};
    for (const Memory& one : report.analysis.memories) {
        std::string items = size_text(one.item);
        if (one.many_items > 0) items += concat(", above 32 ", size_text(one.many_items));
        rows.push_back({one.type, size_text(one.weights), size_text(one.fixed), items,
                        one.most > 0 ? std::to_string(one.most) : "does not fit"});
    }
    return table(rows);
}

// The type whose stages are shown: `auto`, or the first that fits.
std::string shown_type(const Analysis& analysis) {
    return analysis.standard.batch > 0 ? "auto" : analysis.best.type;
}

std::string batch_text(const Report& report) {
    const Analysis& analysis = report.analysis;
    const std::string first = report.shape.is_whisper() ? "encoder" : "prompt";
    const bool has_price = analysis.machine.dollars_per_hour.has_value();
    const std::string price =
        has_price ? concat("$ at ", figure(*analysis.machine.dollars_per_hour), "/h") : "$";
    std::vector<std::vector<std::string>> rows = {{"batch", speed_title(report), first + " ms",
                                                   "step ms", amount_text(report), price, "kJ",
                                                   "bound by"}};
    for (const Prediction& one : analysis.predictions) {
        if (one.type != shown_type(analysis)) continue;
        const Cost cost = cost_of(report, analysis.machine, one.speed);
        const bool standard = one.batch == analysis.standard.batch && one.type == "auto";
        rows.push_back({concat(one.batch, standard ? "*" : ""), figure(one.speed),
                        figure(ms_of(one, first)), figure(ms_of(one, "step")),
                        time_text(cost.seconds), or_dash(cost.dollars), or_dash(cost.joules, 1e-3),
                        bound_text(one.terms)});
    }
    return table(rows);
}

// What bounds each stage of the default batch, or of the fastest if the default does not fit.
std::string stage_text(const Analysis& analysis) {
    const Choice shown = analysis.standard.batch > 0 ? analysis.standard : analysis.best;
    std::vector<std::vector<std::string>> rows = {
        {"stage", concat("ms of batch ", shown.batch), "bound by"}};
    for (const Stage& stage : analysis.of(shown).stages)
        rows.push_back({stage.name, figure(stage.ms), bound_text(stage.terms)});
    return "\n" + table(rows);
}

std::string type_text(const Report& report) {
    const Analysis& analysis = report.analysis;
    if (analysis.memories.size() < 2) return "";
    std::vector<std::vector<std::string>> rows = {{speed_title(report)}};
    std::vector<int64_t> all;
    for (const Prediction& one : analysis.predictions)
        if (std::find(all.begin(), all.end(), one.batch) == all.end()) all.push_back(one.batch);
    std::sort(all.begin(), all.end());
    for (const Memory& memory : analysis.memories) rows[0].push_back(memory.type);
    for (const int64_t batch : all) {
        rows.push_back({concat("batch ", batch)});
        for (const Memory& memory : analysis.memories) {
            const Prediction* one = analysis.find({memory.type, batch});
            rows.back().push_back(one ? figure(one->speed) : "-");
        }
    }
    return "\n" + table(rows);
}

std::string advice_text(const Report& report) {
    std::string text;
    for (const Advice& one : report.analysis.advice)
        text += concat("advice  ", one.text,
                       one.gain ? concat(": ", figure(*one.gain), " times as fast") : "", "\n");
    if (report.analysis.best.batch == 0) return "advice  no type of this model fits\n";
    return text.empty() ? "advice  none: without flags it is within 5% of the fastest\n" : text;
}

std::string compare_text(const Report& report) {
    if (report.offers.empty()) return "";
    std::vector<std::vector<std::string>> rows = {{"gpu", "$/h", "type", "batch",
                                                   speed_title(report), amount_text(report), "$",
                                                   "kJ", "bound by"}};
    for (const Offer& offer : report.offers) {
        const std::string price = or_dash(offer.machine.dollars_per_hour);
        if (!offer.prediction) {
            rows.push_back({offer.machine.name, price, "does not fit", "", "", "", "", "", ""});
            continue;
        }
        const Cost cost = cost_of(report, offer.machine, offer.prediction->speed);
        rows.push_back({offer.machine.name, price, offer.prediction->type,
                        std::to_string(offer.prediction->batch), figure(offer.prediction->speed),
                        time_text(cost.seconds), or_dash(cost.dollars), or_dash(cost.joules, 1e-3),
                        bound_text(offer.prediction->terms)});
    }
    return concat("\nevery known GPU, prices of ", report.prices, "\n", table(rows));
}

nlohmann::ordered_json terms_json(const std::vector<Term>& terms) {
    nlohmann::ordered_json all = nlohmann::ordered_json::array();
    for (const Term& term : terms) all.push_back({{"bound", term.bound}, {"ms", term.ms}});
    return all;
}

nlohmann::ordered_json or_null(const std::optional<double>& value) {
    return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr);
}

nlohmann::ordered_json machine_json(const Machine& machine) {
    const auto known = [](double value) {
        return or_null(value > 0 ? std::optional(value) : std::nullopt);
    };
    return {{"name", machine.name},
            {"measured", machine.is_measured},
            {"f32_tflops", known(machine.f32_tflops)},
            {"half_tflops", machine.half_tflops},
            {"int8_tflops", known(machine.int8_tflops)},
            {"gb_per_s", machine.gb_per_s},
            {"memory_bytes", machine.memory_bytes},
            {"watts", known(machine.watts)},
            {"dollars_per_hour", or_null(machine.dollars_per_hour)}};
}

nlohmann::ordered_json prediction_json(const Report& report, const Machine& machine,
                                       const Prediction& one) {
    const Cost cost = cost_of(report, machine, one.speed);
    nlohmann::ordered_json stages = nlohmann::ordered_json::array();
    for (const Stage& stage : one.stages)
        stages.push_back(
            {{"name", stage.name}, {"ms", stage.ms}, {"terms", terms_json(stage.terms)}});
    return {{"type", one.type},
            {"batch", one.batch},
            {"speed", one.speed},
            {"item_ms", one.item_ms},
            {"seconds", cost.seconds},
            {"dollars", or_null(cost.dollars)},
            {"joules", or_null(cost.joules)},
            {"terms", terms_json(one.terms)},
            {"stages", stages}};
}

}  // namespace

Cost cost_of(const Report& report, const Machine& machine, double speed) {
    Cost cost;
    cost.seconds = (report.shape.is_whisper() ? report.audio_hours * 3600 : kTokens) / speed;
    if (machine.dollars_per_hour) cost.dollars = *machine.dollars_per_hour * cost.seconds / 3600;
    if (machine.watts > 0) cost.joules = machine.watts * cost.seconds;
    return cost;
}

std::vector<Offer> compare(const Shape& shape, const Load& load, const Prices& prices) {
    std::vector<Offer> offers;
    for (const KnownGpu& gpu : known_gpus()) {
        Machine machine = expected_machine(gpu);
        machine.dollars_per_hour = prices.of(gpu.name);
        const Analysis analysis = analyse(machine, shape, load);
        const Choice with_auto = fastest_batch(analysis, "auto");
        const Prediction* found = analysis.find(with_auto.batch > 0 ? with_auto : analysis.best);
        offers.push_back({machine, found ? std::optional(*found) : std::nullopt});
    }
    // Dollars per speed; one that does not fit or has no price is after all others.
    const auto key = [](const Offer& offer) {
        const double speed = offer.prediction ? offer.prediction->speed : 0;
        if (speed == 0) return std::pair(2, 0.0);
        if (!offer.machine.dollars_per_hour) return std::pair(1, -speed);
        return std::pair(0, *offer.machine.dollars_per_hour / speed);
    };
    std::stable_sort(offers.begin(), offers.end(),
                     [&](const Offer& a, const Offer& b) { return key(a) < key(b); });
    return offers;
}

std::string as_text(const Report& report) {
    std::string text = heading(report) + "\n" + memory_text(report);
    if (report.analysis.best.batch > 0)
        text += "\n" + batch_text(report) + stage_text(report.analysis) + type_text(report);
    text += "\n" + advice_text(report) + compare_text(report);
    return report.proof ? text + "\n" + proof_text(*report.proof) : text;
}

nlohmann::ordered_json as_json(const Report& report) {
    const Analysis& analysis = report.analysis;
    const bool whisper = report.shape.is_whisper();
    nlohmann::ordered_json json = {{"model", report.shape.name()},
                                   {"kind", whisper ? "whisper" : "gpt"},
                                   {"stored", report.shape.stored()},
                                   {"machine", machine_json(analysis.machine)}};
    if (whisper)
        json["load"] = {{"tokens_per_window", analysis.load.tokens_per_window},
                        {"audio_hours", report.audio_hours}};
    else
        json["load"] = {{"prompt_tokens", analysis.load.prompt_tokens},
                        {"max_tokens", analysis.load.max_tokens},
                        {"tokens", kTokens}};
    json["memory"] = nlohmann::ordered_json::array();
    for (const Memory& one : analysis.memories)
        json["memory"].push_back({{"type", one.type},
                                  {"weights", one.weights},
                                  {"fixed", one.fixed},
                                  {"item", one.item},
                                  {"many_items", one.many_items},
                                  {"most", one.most}});
    json["predictions"] = nlohmann::ordered_json::array();
    for (const Prediction& one : analysis.predictions)
        json["predictions"].push_back(prediction_json(report, analysis.machine, one));
    json["default_batch"] = analysis.standard.batch;
    json["advice"] = nlohmann::ordered_json::array();
    for (const Advice& one : analysis.advice)
        json["advice"].push_back({{"text", one.text}, {"gain", or_null(one.gain)}});
    if (!report.offers.empty()) {
        json["prices"] = report.prices;
        json["compare"] = nlohmann::ordered_json::array();
    }
    for (const Offer& offer : report.offers) {
        nlohmann::ordered_json one = {{"machine", machine_json(offer.machine)},
                                      {"prediction", nullptr}};
        if (offer.prediction)
            one["prediction"] = prediction_json(report, offer.machine, *offer.prediction);
        json["compare"].push_back(one);
    }
    if (report.proof) json["proof"] = proof_json(*report.proof);
    return json;
}

}  // namespace hark::advice
