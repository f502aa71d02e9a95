#include "operations/advice/advice.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "operations/doctor/finding.h"

namespace hark::advice {
namespace {

constexpr double kLeastGain = 1.05;   // less is within what machines of a kind differ by
constexpr double kNearlyBest = 0.97;  // of the best speed: larger batches are not worth it
constexpr size_t kMostAdvice = 3;

// Times real time that a core decodes MP3 of 44.1 kHz and makes mel of 80 bands.
// Source: docs/performance.md [18].
constexpr double kMp3PerCore = 600, kMelPerCore = 4600;

using doctor::figure;

// The fastest type at its batch, if it is faster than `auto`.
Choice fastest(const Analysis& analysis, bool with_file_types) {
    Choice best = fastest_batch(analysis, "auto");
    for (const Memory& memory : analysis.memories) {
        const Choice other = fastest_batch(analysis, memory.type);
        if (other.batch == 0 || (is_file_type(memory.type) && !with_file_types)) continue;
        if (best.batch == 0 || analysis.of(other).speed > kLeastGain * analysis.of(best).speed)
            best = other;
    }
    return best;
}

void advise_batch(Analysis& analysis, const Shape& shape) {
    const Choice batch = fastest_batch(analysis, "auto");
    if (analysis.standard.batch == 0 || batch.batch == 0) return;
    const double gain = analysis.of(batch).speed / analysis.of(analysis.standard).speed;
    analysis.advice.push_back(
        {concat(shape.is_whisper() ? "--batch-size " : "--max-sequences ", batch.batch,
                " instead of ", analysis.standard.batch,
                shape.is_whisper() ? ", for many recordings" : ", for many prompts"),
         gain});
}

void advise_type(Analysis& analysis) {
    const Choice& best = analysis.best;
    if (best.type == "auto" || best.batch == 0) return;
    const Choice with_auto = fastest_batch(analysis, "auto");
    if (with_auto.batch == 0) {
        analysis.advice.push_back(
            {concat(type_flag(best.type), ": auto does not fit"), std::nullopt});
        return;
    }
    // At one batch, so that this gain and that of the batch multiply.
    const Prediction* same = analysis.find({best.type, with_auto.batch});
    if (!same) return;
    analysis.advice.push_back({concat(type_flag(best.type), "; --run counts the words that change"),
                               same->speed / analysis.of(with_auto).speed});
}

// One text at a time reads all weights for each of its tokens.
void advise_single_text(Analysis& analysis) {
    const Prediction* alone = analysis.find({"auto", 1});
    const Prediction* best = alone;
    for (const Prediction& one : analysis.predictions)
        if (best && one.batch == 1 && one.speed > best->speed) best = &one;
    if (best == alone) return;
    analysis.advice.push_back({concat(type_flag(best->type),
                                      ", for one text at a time; its words "
                                      "may differ"),
                               best->speed / alone->speed});
}

// One recording is decoded window after window unless windows are independent.
void advise_windows(Analysis& analysis) {
    const Prediction* alone = analysis.find({"auto", 1});
    if (!alone || analysis.standard.batch < 2) return;
    analysis.advice.push_back(
        {concat("--windows independent, for one recording alone: ", analysis.standard.batch,
                " windows at once; its words may differ"),
         analysis.of(analysis.standard).speed / alone->speed});
}

void advise_turbo(Analysis& analysis, const Shape& shape) {
    const whisper::Config& config = shape.whisper();
    const whisper::Config turbo = whisper::official_config("turbo");
    const bool is_large =
        config.n_audio_state == turbo.n_audio_state && config.n_text_layer > turbo.n_text_layer;
    if (!is_large || analysis.best.batch == 0) return;
    const Shape other("turbo", turbo);
    const Weights weights = other.weights(analysis.best.type, analysis.machine.is_gpu);
    const double speed =
        predict(analysis.machine, other, weights, analysis.best.batch, analysis.load).speed;
    analysis.advice.push_back({"turbo instead of this model; its words differ",
                               speed / analysis.of(analysis.best).speed});
}

// A GPU that is faster than this machine's cores decode recordings.
void advise_cores(Analysis& analysis) {
    if (!analysis.machine.is_gpu || analysis.machine.cores == 0 || analysis.best.batch == 0) return;
    const double speed = analysis.of(analysis.best).speed;
    const double cores = std::ceil(speed * (1 / kMp3PerCore + 1 / kMelPerCore));
    if (cores <= analysis.machine.cores) return;
    analysis.advice.push_back({concat(figure(cores), " cores instead of ", analysis.machine.cores,
                                      ", which decode MP3 more slowly than the GPU transcribes"),
                               cores / analysis.machine.cores});
}

}  // namespace

Choice fastest_batch(const Analysis& analysis, const std::string& type) {
    Choice choice{type, 0};
    double most = 0;
    for (const Prediction& one : analysis.predictions)
        if (one.type == type) most = std::max(most, one.speed);
    for (const Prediction& one : analysis.predictions)
        if (one.type == type && one.speed >= kNearlyBest * most &&
            (choice.batch == 0 || one.batch == analysis.standard.batch))
            choice.batch = one.batch;
    return choice;
}

const Prediction* Analysis::find(const Choice& choice) const {
    for (const Prediction& one : predictions)
        if (one.type == choice.type && one.batch == choice.batch) return &one;
    return nullptr;
}

const Prediction& Analysis::of(const Choice& choice) const {
    const Prediction* found = find(choice);
    require(found != nullptr, "internal error: no prediction of ", choice.type, " with ",
            choice.batch);
    return *found;
}

Analysis analyse(const Machine& machine, const Shape& shape, const Load& load) {
    Analysis analysis;
    analysis.machine = machine;
    analysis.load = load;
    for (const std::string& type : shape.types(machine.is_gpu, machine.is_hopper)) {
        const Weights weights = shape.weights(type, machine.is_gpu);
        const Memory memory = memory_of(machine, shape, weights, load);
        analysis.memories.push_back(memory);
        for (const int64_t batch : batches(machine, shape, memory))
            analysis.predictions.push_back(predict(machine, shape, weights, batch, load));
    }
    analysis.standard = {"auto", default_batch(machine, shape, analysis.memories.front())};
    analysis.best = fastest(analysis, true);
    analysis.best_flags = fastest(analysis, false);
    advise_batch(analysis, shape);
    advise_type(analysis);
    if (shape.is_whisper()) {
        advise_windows(analysis);
        advise_turbo(analysis, shape);
        advise_cores(analysis);
    } else if (analysis.best.type == "auto") {
        advise_single_text(analysis);
    }
    const auto gain_of = [](const Advice& one) { return one.gain.value_or(HUGE_VAL); };
    std::erase_if(analysis.advice, [&](const Advice& one) { return gain_of(one) < kLeastGain; });
    std::stable_sort(analysis.advice.begin(), analysis.advice.end(),
                     [&](const Advice& a, const Advice& b) { return gain_of(a) > gain_of(b); });
    if (analysis.advice.size() > kMostAdvice) analysis.advice.resize(kMostAdvice);
    return analysis;
}

bool is_file_type(const std::string& type) { return type.starts_with("q"); }

std::string type_flag(const std::string& type) {
    return is_file_type(type) ? concat("hark model convert ... --type ", type)
                              : concat("--dtype ", type);
}

}  // namespace hark::advice
