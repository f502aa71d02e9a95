// Requests of transcripts, and transcripts in OpenAI's forms.
#include "serve/openai/transcripts.h"

#include <gtest/gtest.h>

#include "core/json/json.h"
#include "support/expect.h"

namespace hark::serve {
namespace {

using nlohmann::ordered_json;
using Fields = std::vector<std::pair<std::string, std::string>>;

Form form_with(Fields fields) {
    fields.insert(fields.begin(), {"model", "m"});
    return {.fields = std::move(fields), .file = std::make_shared<SpooledFile>()};
}

void expect_refused(const Form& form, const std::string& field, const std::string& message,
                    const std::string& task = "transcribe") {
    try {
        read_audio_query(form, task);
        ADD_FAILURE() << field << ": not refused";
    } catch (const WebError& why) {
        EXPECT_EQ(why.status, 400);
        EXPECT_EQ(why.param, field);
        test::expect_contains(why.what(), message);
    }
}

TEST(ServeTranscripts, RequestsHaveOpenAisFields) {
    const AudioQuery query = read_audio_query(form_with({{"language", "German"},
                                                         {"prompt", "Names: Hark"},
                                                         {"temperature", "0.2"},
                                                         {"response_format", "verbose_json"},
                                                         {"timestamp_granularities[]", "word"},
                                                         {"timestamp_granularities[]", "segment"},
                                                         {"vad_filter", "true"},
                                                         {"user", "someone"}}),
                                              "transcribe");
    EXPECT_EQ(query.model, "m");
    EXPECT_EQ(query.options.language, "de");
    EXPECT_EQ(query.options.initial_prompt, "Names: Hark");
    EXPECT_EQ(query.options.temperature, 0.2);
    EXPECT_TRUE(query.options.vad && query.options.words.timestamps);
    EXPECT_TRUE(query.has_words && query.has_segments && !query.streams);
    const AudioQuery plain = read_audio_query(form_with({}), "translate");
    EXPECT_EQ(plain.options.task, "translate");
    EXPECT_EQ(plain.format, "json");
    EXPECT_TRUE(plain.has_segments && !plain.has_words);
}

TEST(ServeTranscripts, WrongFieldsAreRefusedByName) {
    expect_refused(form_with({{"langauge", "de"}}), "langauge", "is not supported");
    expect_refused(form_with({{"language", "klingon"}}), "language", "no language 'klingon'");
    expect_refused(form_with({{"language", "de"}}), "language", "is not supported", "translate");
    for (const char* wrong : {"hot", "-1", "2", "", "0.1x", "nan"})
        expect_refused(form_with({{"temperature", wrong}}), "temperature", "from 0 to 1");
    expect_refused(form_with({{"response_format", "xml"}}), "response_format", "verbose_json");
    expect_refused(form_with({{"stream", "1"}}), "stream", "true or false");
    expect_refused(form_with({{"stream", "true"}, {"response_format", "srt"}}), "stream", "text");
    expect_refused(form_with({{"timestamp_granularities[]", "word"}}), "timestamp_granularities[]",
                   "verbose_json");
    expect_refused(
        form_with({{"response_format", "verbose_json"}, {"timestamp_granularities[]", "letter"}}),
        "timestamp_granularities[]", "segment or word");
    Form form = form_with({});
    form.file.reset();
    expect_refused(form, "file", "is required");
    form = form_with({});
    form.fields.clear();
    expect_refused(form, "model", "is required");
}

TEST(ServeTranscripts, HaveOpenAisForms) {
    Transcript transcript{.text = " Hi. Ho.", .language = "en", .seconds = 2.5};
    whisper::Segment segment{.start = 0, .end = 1.5, .text = " Hi."};
    segment.words = {{.text = " Hi.", .start = 0, .end = 1.5, .probability = 1}};
    transcript.segments = {segment, {.start = 1.5, .end = 2.5, .text = " Ho."}};
    const auto body = [&](const std::string& format, bool words) {
        AudioQuery query{.format = format, .has_segments = !words, .has_words = words};
        return transcript_response(query, transcript).body;
    };
    EXPECT_EQ(body("json", false),
              R"({"text":"Hi. Ho.","usage":{"type":"duration","seconds":2.5}})");
    EXPECT_EQ(body("text", false), "Hi.\nHo.\n");
    EXPECT_EQ(body("srt", false),
              "1\n00:00:00,000 --> 00:00:01,500\nHi.\n\n2\n00:00:01,500 --> 00:00:02,500\nHo.\n\n");
    EXPECT_TRUE(body("vtt", false).starts_with("WEBVTT\n\n00:00.000 --> 00:01.500\nHi.\n"));
    EXPECT_EQ(body("verbose_json", true),
              R"({"task":"transcribe","language":"english","duration":2.5,"text":"Hi. Ho.",)"
              R"("words":[{"word":"Hi.","start":0.0,"end":1.5}]})");
    const ordered_json verbose = ordered_json::parse(body("verbose_json", false));
    ASSERT_EQ(verbose["segments"].size(), 2u);
    EXPECT_EQ(verbose["segments"][1]["id"], 1);
    EXPECT_EQ(verbose["segments"][1]["text"], " Ho.");
    EXPECT_FALSE(verbose["segments"][0].contains("words"));
    for (const auto& [code, name] :
         {std::pair("es", "spanish"), {"zh", "chinese"}, {"de", "german"}, {"", ""}}) {
        transcript.language = code;
        EXPECT_EQ(ordered_json::parse(body("verbose_json", true))["language"], name);
    }
    AudioQuery vtt{.format = "vtt"};
    EXPECT_EQ(transcript_response(vtt, transcript).content_type, "text/vtt; charset=utf-8");
}

}  // namespace
}  // namespace hark::serve
