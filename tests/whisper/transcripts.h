// Compares the demo model's transcripts with a golden file of openai-whisper's transcribe().
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <sstream>

#include "kernels/runtime/backend.h"
#include "whisper/model/model.h"
#include "whisper/support.h"

namespace hark::test {

using namespace hark::whisper;
using nlohmann::json;

// Whether long recordings are all transcribed, as tests/sanitize.sh asks.
inline bool all_recordings() { return std::getenv("HARK_ALL_RECORDINGS") != nullptr; }

// Recordings 0 to n - 1, which a golden file has in order of length: those before `shorter`, then
// one of `among`.
inline std::vector<size_t> fewer_long_ones(size_t n, size_t shorter, size_t among) {
    std::vector<size_t> places;
    for (size_t i = 0; i < n; ++i)
        if (all_recordings() || i < shorter || (i - shorter) % among == 0) places.push_back(i);
    return places;
}

// The demo model in one precision, loaded once: "f32" on the CPU, "cuda:f32" on the first GPU.
struct Demo {
    explicit Demo(const std::string& name)
        : ctx(context(name)),
          model(load_model(whisper_demo(),
                           precision_of(name.substr(name.find(':') + 1), ctx.device),
                           ctx.arena.source())),
          tokenizer(whisper_demo(), model.config.n_vocab) {}
    static Context context(const std::string& name) {
        if (name.starts_with("cuda:")) return make_cuda_context(0);
        return make_cpu_context(1);
    }
    Context ctx;
    Model model;
    Tokenizer tokenizer;
};

inline Demo& demo(const std::string& name) {
    static std::map<std::string, std::unique_ptr<Demo>> loaded;
    std::unique_ptr<Demo>& one = loaded[name];
    if (!one) one = std::make_unique<Demo>(name);
    return *one;
}

inline TranscribeOptions options_of(const json& given, std::vector<double> temperature) {
    TranscribeOptions options;
    options.temperature = temperature.at(0);
    options.fallback_temperatures.assign(temperature.begin() + 1, temperature.end());
    const auto number = [](const json& value) {
        return value.is_null() ? std::nullopt : std::optional(value.get<double>());
    };
    for (const auto& [key, value] : given.items()) {
        if (key == "suppress_tokens")
            options.suppress_tokens = value.get<std::string>();
        else if (key == "sample_len")
            options.sample_len = value.get<int64_t>();
        else if (key == "prefix")
            options.prefix = value.get<std::string>();
        else if (key == "max_initial_timestamp")
            options.max_initial_timestamp = number(value);
        else if (key == "compression_ratio_threshold")
            options.thresholds.compression_ratio = number(value);
        else if (key == "logprob_threshold")
            options.thresholds.logprob = number(value);
        else if (key == "no_speech_threshold")
            options.thresholds.no_speech = number(value);
        else if (key == "language")
            options.language = value.get<std::string>();
        else if (key == "task")
            options.task = value.get<std::string>();
        else if (key == "initial_prompt")
            options.initial_prompt = value.get<std::string>();
        else if (key == "carry_initial_prompt")
            options.carry_initial_prompt = value.get<bool>();
        else if (key == "without_timestamps")
            options.timestamps = !value.get<bool>();
        else if (key == "condition_on_previous_text")
            options.previous_text = value.get<bool>();
        else if (key == "beam_size")
            options.beam_size = value.get<int64_t>();
        else if (key == "patience")
            options.patience = value.get<double>();
        else if (key == "length_penalty")
            options.length_penalty = value.get<double>();
        else if (key == "word_timestamps")
            options.words.timestamps = value.get<bool>();
        else if (key == "prepend_punctuations")
            options.words.prepended = value.get<std::string>();
        else if (key == "append_punctuations")
            options.words.appended = value.get<std::string>();
        else if (key == "hallucination_silence_threshold")
            options.words.hallucination_silence = value.get<double>();
        else if (key == "clip_timestamps") {
            std::istringstream in(value.get<std::string>());
            for (std::string part; std::getline(in, part, ',');)
                options.clips.push_back(std::stod(part));
        } else
            throw std::runtime_error("unknown option " + key);
    }
    return options;
}

struct Outcome {
    std::string language, text;
    std::vector<Segment> segments;
    std::vector<Attempt> attempts;
};

// Transcribes the entries' recordings together, `batch` windows at once; outcomes in order.
inline std::vector<Outcome> run_all(const std::vector<MelRecording>& mels,
                                    const TranscribeOptions& options, const std::string& dtype,
                                    const Model* draft = nullptr) {
    Demo& d = demo(dtype);
    std::vector<Outcome> runs;
    Transcriber::Listener listener;
    listener.begin = [&](const RecordingInfo& info) { runs.push_back({info.language}); };
    listener.segment = [&](const Segment& segment) { runs.back().segments.push_back(segment); };
    listener.end = [&](const Transcription& recording) { runs.back().text = recording.text(); };
    Transcriber transcriber(d.ctx, d.model, d.tokenizer, options, listener, draft);
    for (const MelRecording& mel : mels) {
        while (!transcriber.has_room()) transcriber.advance();
        transcriber.add({"test"}, "", mel);
    }
    while (!transcriber.idle()) transcriber.advance();
    return runs;
}

// The entry with the language that the reference has detected: detecting it once more takes as long
// as a window. It is left out where all recordings are run.
inline json in_its_language(json entry) {
    if (!all_recordings()) entry["options"]["language"] = entry["language"];
    return entry;
}

// Up to `attempts` windows decoded: what comes after them is left.
inline Outcome run(const json& entry, const std::string& dtype, std::vector<double> temperature,
                   size_t attempts = SIZE_MAX) {
    Outcome run;
    Transcriber::Listener listener;
    listener.begin = [&](const RecordingInfo& info) { run.language = info.language; };
    listener.segment = [&](const Segment& segment) { run.segments.push_back(segment); };
    listener.attempt = [&](const Attempt& attempt) { run.attempts.push_back(attempt); };
    listener.end = [&](const Transcription& recording) { run.text = recording.text(); };
    Demo& d = demo(dtype);
    Transcriber transcriber(
        d.ctx, d.model, d.tokenizer,
        options_of(entry.value("options", json::object()), std::move(temperature)), listener);
    transcriber.add({"test"}, "", mel_of(samples_of(entry)));
    while (!transcriber.idle() && run.attempts.size() < attempts) transcriber.advance();
    return run;
}

inline void expect_same_window(const Attempt& ours, const json& theirs) {
    EXPECT_EQ(ours.seek, theirs[0].get<int64_t>());
    EXPECT_EQ(ours.result.tokens, theirs[2].get<std::vector<int32_t>>());
    EXPECT_NEAR(ours.result.avg_logprob, theirs[3].get<double>(), 1e-3);
    EXPECT_NEAR(ours.result.compression_ratio, theirs[4].get<double>(), 1e-5);
    EXPECT_NEAR(ours.result.no_speech_prob, theirs[5].get<double>(), 1e-3);
}

// Where words give the segments their times, these are as near as the words' own.
inline void expect_same_recording(const json& theirs, const Outcome& ours,
                                  double time_tolerance = 1e-6) {
    EXPECT_EQ(ours.language, theirs["language"].get<std::string>());
    EXPECT_EQ(ours.text, theirs["text"].get<std::string>());
    ASSERT_EQ(ours.attempts.size(), theirs["windows"].size());
    for (size_t i = 0; i < ours.attempts.size(); ++i)
        expect_same_window(ours.attempts[i], theirs["windows"][i]);
    std::vector<json> segments;  // those with text
    for (const json& segment : theirs["segments"])
        if (!segment[3].get<std::string>().empty()) segments.push_back(segment);
    ASSERT_EQ(ours.segments.size(), segments.size());
    for (size_t i = 0; i < segments.size(); ++i) {
        const Segment& segment = ours.segments[i];
        EXPECT_EQ(segment.seek, segments[i][0].get<int64_t>());
        EXPECT_NEAR(segment.start, segments[i][1].get<double>(), time_tolerance);
        EXPECT_NEAR(segment.end, segments[i][2].get<double>(), time_tolerance);
        EXPECT_EQ(segment.text, segments[i][3].get<std::string>());
        EXPECT_EQ(segment.tokens, segments[i][4].get<std::vector<int32_t>>());
        EXPECT_EQ(segment.temperature, segments[i][5].get<double>());
    }
}

inline constexpr double kWordTimes = 0.02 + 1e-6;  // seconds: one step of the alignment

inline void expect_same_words(const Segment& ours, const json& theirs) {
    ASSERT_TRUE(ours.words.has_value());
    ASSERT_EQ(ours.words->size(), theirs.size()) << ours.text;
    for (size_t i = 0; i < theirs.size(); ++i) {
        const Word& word = (*ours.words)[i];
        SCOPED_TRACE(concat("word ", i, " of ", ours.text));
        EXPECT_EQ(word.text, theirs[i][0].get<std::string>());
        EXPECT_NEAR(word.start, theirs[i][1].get<double>(), kWordTimes);
        EXPECT_NEAR(word.end, theirs[i][2].get<double>(), kWordTimes);
        EXPECT_NEAR(word.probability, theirs[i][3].get<double>(), 1e-3);
    }
}

inline void expect_same_words(const json& theirs, const Outcome& ours) {
    size_t next = 0;
    for (const json& segment : theirs["segments"]) {
        if (segment[3].get<std::string>().empty()) continue;
        ASSERT_LT(next, ours.segments.size());
        expect_same_words(ours.segments[next++], segment[9]);
    }
}

// To the bit.
inline void expect_equal(const Outcome& a, const Outcome& b) {
    EXPECT_EQ(a.language, b.language);
    EXPECT_EQ(a.text, b.text);
    ASSERT_EQ(a.segments.size(), b.segments.size());
    for (size_t i = 0; i < a.segments.size(); ++i) {
        const Segment &x = a.segments[i], &y = b.segments[i];
        EXPECT_EQ(x.start, y.start);
        EXPECT_EQ(x.end, y.end);
        EXPECT_EQ(x.tokens, y.tokens);
        EXPECT_EQ(x.avg_logprob, y.avg_logprob);
        EXPECT_EQ(x.no_speech_prob, y.no_speech_prob);
        EXPECT_EQ(x.temperature, y.temperature);
        ASSERT_EQ(x.words.has_value(), y.words.has_value());
        if (!x.words) continue;
        ASSERT_EQ(x.words->size(), y.words->size());
        for (size_t k = 0; k < x.words->size(); ++k) {
            EXPECT_EQ((*x.words)[k].start, (*y.words)[k].start);
            EXPECT_EQ((*x.words)[k].probability, (*y.words)[k].probability);
        }
    }
}

inline std::string name_of_entry(const json& entry) {
    return concat(entry["kind"].get<std::string>(), entry["seed"].get<int>());
}

}  // namespace hark::test
