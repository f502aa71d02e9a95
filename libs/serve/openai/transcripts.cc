#include "serve/openai/transcripts.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "core/ascii.h"
#include "core/json/json.h"
#include "serve/audio/audio_model.h"
#include "serve/audio/audio_service.h"
#include "serve/openai/errors.h"
#include "serve/openai/events.h"
#include "serve/openai/fields.h"
#include "whisper/model/languages.h"
#include "whisper/output/strings.h"
#include "whisper/output/transcript_json.h"

namespace hark::serve {
namespace {

using nlohmann::ordered_json;

bool read_flag(const std::string& name, const std::string& value) {
    if (value != "true" && value != "false")
        refuse_field(name, concat("expected true or false, found '", value, "'"));
    return value == "true";
}

double read_temperature(const std::string& value) {
    double temperature = -1;
    const char* const end = value.data() + value.size();
    if (std::from_chars(value.data(), end, temperature).ptr != end || !(temperature >= 0) ||
        temperature > 1)
        refuse_field("temperature", concat("expected a number from 0 to 1, found '", value, "'"));
    return temperature;
}

std::string read_format(const std::string& value) {
    for (const char* const known : {"json", "text", "srt", "vtt", "verbose_json"})
        if (value == known) return value;
    refuse_field("response_format",
                 concat("expected json, text, srt, vtt or verbose_json, found '", value, "'"));
}

struct Granularities {
    bool any = false, segment = false, word = false;

    void add(const std::string& name, const std::string& value) {
        if (value != "segment" && value != "word")
            refuse_field(name, concat("expected segment or word, found '", value, "'"));
        any = true;
        (value == "word" ? word : segment) = true;
    }
};

void read_field(const std::string& name, const std::string& value, AudioQuery& query) {
    whisper::TranscribeOptions& options = query.options;
    if (name == "model") {
        query.model = value;
    } else if (name == "language" && options.task == "transcribe") {
        options.language = read_language(value);
    } else if (name == "prompt") {
        options.initial_prompt = value;
    } else if (name == "hotwords") {
        options.hotwords = value;
    } else if (name == "temperature") {
        options.temperature = read_temperature(value);
    } else if (name == "response_format") {
        query.format = read_format(value);
    } else if (name == "stream") {
        query.streams = read_flag(name, value);
    } else if (name == "vad_filter") {
        options.vad = read_flag(name, value);
    } else if (name != "user") {
        refuse_field(name, "is not supported");
    }
}

// "english": the lower-case name, as OpenAI's API has it.
std::string name_of_language(const std::string& code) {
    const std::vector<std::string> names = whisper::language_names(code);
    return ascii_lower(names[std::min<size_t>(1, names.size() - 1)]);  // before the aliases
}

// The transcript as whisper-transcribe writes it.
std::string formatted(const std::string& format, const Transcript& transcript) {
    std::string text;
    const auto writer =
        whisper::make_transcript_writer(format, [&](const std::string& part) { text += part; });
    writer->begin({.language = transcript.language, .seconds = transcript.seconds});
    for (const whisper::Segment& segment : transcript.segments) writer->segment(segment);
    writer->end(transcript.text, "");
    return text;
}

// As a line of whisper-transcribe's jsonl, without the recording.
ordered_json segment_json(const whisper::Segment& segment) {
    ordered_json json = whisper::to_json(segment);
    json["language"] = segment.language;
    return json;
}

ordered_json verbose_json(const AudioQuery& query, const Transcript& transcript) {
    const auto whole = parse_ordered_json(formatted("json", transcript), "transcript");
    ordered_json root = {{"task", query.options.task},
                         {"language", name_of_language(transcript.language)},
                         {"duration", transcript.seconds},
                         {"text", whisper::strip(transcript.text)}};
    ordered_json words = ordered_json::array(), segments = whole["segments"];
    for (ordered_json& segment : segments) {
        for (const ordered_json& word : segment.value("words", ordered_json::array()))
            words.push_back({{"word", whisper::strip(word["word"].get<std::string>())},
                             {"start", word["start"]},
                             {"end", word["end"]}});
        segment.erase("words");
    }
    if (query.has_words) root["words"] = words;
    if (query.has_segments) root["segments"] = segments;
    return root;
}

}  // namespace

std::string read_language(const std::string& value) {
    const std::string code = whisper::language_code(value);
    const std::vector<std::string> codes = whisper::language_codes();
    if (std::find(codes.begin(), codes.end(), code) == codes.end())
        refuse_field("language", concat("no language '", value, "'"));
    return code;
}

AudioQuery read_audio_query(const Form& form, const std::string& task) {
    AudioQuery query;
    query.options.task = task;
    Granularities granularities;
    for (const auto& [name, value] : form.fields) {
        if (name == "timestamp_granularities[]" || name == "timestamp_granularities")
            granularities.add(name, value);
        else
            read_field(name, value, query);
    }
    if (query.model.empty()) refuse_field("model", "is required");
    if (!form.file) refuse_field("file", "is required");
    if (granularities.any && query.format != "verbose_json")
        refuse_field("timestamp_granularities[]", "is for response_format verbose_json");
    if (query.streams && (query.format == "srt" || query.format == "vtt"))
        refuse_field("stream", "is for response_format json, text and verbose_json");
    query.has_words = query.options.words.timestamps = granularities.word;
    query.has_segments = granularities.segment || !granularities.word;
    return query;
}

WebResponse transcript_response(const AudioQuery& query, const Transcript& transcript) {
    if (query.format == "verbose_json") return {.body = json_text(verbose_json(query, transcript))};
    if (query.format == "json") {
        const ordered_json usage = {{"type", "duration"}, {"seconds", transcript.seconds}};
        return {.body = json_text(nlohmann::ordered_json{{"text", whisper::strip(transcript.text)},
                                                         {"usage", usage}})};
    }
    const char* const type =
        query.format == "vtt" ? "text/vtt; charset=utf-8" : "text/plain; charset=utf-8";
    return {.content_type = type, .body = formatted(query.format, transcript)};
}

void TranscriptAnswer::start(AudioService& service, ModelLease lease, AudioQuery query,
                             std::shared_ptr<SpooledFile> file, std::shared_ptr<WebAnswer> out) {
    const auto job = std::make_shared<AudioJob>();
    job->file = std::move(file);
    job->options = query.options;
    const auto answer = std::make_shared<TranscriptAnswer>(std::move(lease), std::move(query), out);
    job->listener = answer;
    service.ask(job);
    // Keeps the answer until it has ended.
    out->when_left([&service, job, answer] { service.cancel(job); });
}

void TranscriptAnswer::begin_stream() {
    if (!std::exchange(has_begun_, true)) out_->begin(event_stream());
}

void TranscriptAnswer::segment(const whisper::Segment& segment) {
    if (!query_.streams) return;
    begin_stream();
    ordered_json event = {{"type", "transcript.text.delta"}, {"delta", segment.text}};
    if (query_.format == "verbose_json") event["segment"] = segment_json(segment);
    out_->add(event_of(event));
}

void TranscriptAnswer::ended(const Transcript& transcript) {
    if (!query_.streams) return out_->send(transcript_response(query_, transcript));
    begin_stream();
    ordered_json event = {{"type", "transcript.text.done"},
                          {"text", whisper::strip(transcript.text)}};
    if (query_.format == "verbose_json") {
        event["language"] = name_of_language(transcript.language);
        event["duration"] = transcript.seconds;
    }
    out_->add(event_of(event));
    out_->end();
}

void TranscriptAnswer::failed(const WebError& why) {
    if (!has_begun_) return out_->send(error_response(why));
    out_->add(event_of(error_json(why)));
    out_->end();
}

}  // namespace hark::serve
