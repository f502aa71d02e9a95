// hark-serve's audio endpoints on the real binary: what they answer is what the pipe writes.
#include <csignal>
#include <thread>

#include "support/audio.h"
#include "tools/hark_serve.h"

using namespace hark::test;

namespace {

const std::string kTranscriptions = "/v1/audio/transcriptions";
const std::string kRunning = "hark_audio_requests_running{model_name=\"whisper-demo\"}";

Served& audio_server() {
    static Served server({"--model", kSpeechDemo, "--max-audio-seconds", "20"});
    return server;
}

TestReply transcribe_file(const std::string& file, std::map<std::string, std::string> fields = {},
                          const std::string& path = kTranscriptions) {
    TestClient client(audio_server().address());
    client.send(form_request(path, file, std::move(fields)));
    return client.receive();
}

std::string sample_bytes(const std::string& name) { return read_text(samples_dir() / name); }

std::string pipe_text(const std::string& name, const std::string& more) {
    const ProcessResult run =
        run_shell("audio-decode " + (samples_dir() / name).string() +
                  " | mel | whisper-transcribe --model demo --threads 1 " + more);
    EXPECT_EQ(run.exit_code, 0) << run.err;
    return run.out;
}

// Of requests that are not about it: detecting the language takes as long as the rest.
const std::pair<const std::string, std::string> kEnglish = {"language", "en"};

}  // namespace

TEST(HarkServeAudio, TranscriptsAreThoseOfThePipe) {
    const TemporaryDirectory pipe;
    pipe_text("room.m4a", "--format text,srt,vtt --output-dir '" + pipe.path().string() + "'");
    for (const std::string format : {"text", "srt", "vtt"})
        EXPECT_EQ(transcribe_file(sample_bytes("room.m4a"), {{"response_format", format}}).body,
                  read_text(pipe.path() / (format == "text" ? "room.txt" : "room." + format)));
    const json expected = json::parse(pipe_text("train.wav", "--format json --word-timestamps"));
    const TestReply reply = transcribe_file(
        sample_bytes("train.wav"),
        {{"response_format", "verbose_json"}, {"timestamp_granularities[]", "word"}});
    ASSERT_EQ(reply.status, 200) << reply.body;
    const json verbose = json::parse(reply.body);
    EXPECT_EQ(" " + verbose["text"].get<std::string>(), expected["text"]);
    EXPECT_EQ(verbose["language"], "english");
    const json& words = expected["segments"][0]["words"];
    ASSERT_GE(verbose["words"].size(), words.size());
    for (size_t i = 0; i < words.size(); ++i) {
        EXPECT_EQ(" " + verbose["words"][i]["word"].get<std::string>(), words[i]["word"]);
        EXPECT_EQ(verbose["words"][i]["start"], words[i]["start"]);
        EXPECT_EQ(verbose["words"][i]["end"], words[i]["end"]);
    }
}

TEST(HarkServeAudio, SegmentsAreStreamed) {
    const std::string file = sample_bytes("news.mp4");
    const std::string text = json::parse(transcribe_file(file, {kEnglish}).body)["text"];
    const TestReply reply = transcribe_file(file, {{"stream", "true"}, kEnglish});
    EXPECT_EQ(reply.headers.at("content-type"), "text/event-stream");
    std::string joined;
    json last;
    for (const std::string& event : events_of(reply.body)) {
        last = json::parse(event);
        if (last["type"] == "transcript.text.delta") joined += last["delta"].get<std::string>();
    }
    EXPECT_EQ(last["type"], "transcript.text.done");
    EXPECT_EQ(last["text"], text);
    EXPECT_EQ(joined, " " + text);
}

TEST(HarkServeAudio, StreamedSegmentsAreThoseOfJsonLines) {
    const TestReply reply =
        transcribe_file(sample_bytes("news.mp4"), {{"stream", "true"},
                                                   {"response_format", "verbose_json"},
                                                   {"timestamp_granularities[]", "word"}});
    ASSERT_EQ(reply.status, 200) << reply.body;
    const std::vector<std::string> lines =
        lines_of(pipe_text("news.mp4", "--format jsonl --word-timestamps"));
    const std::vector<std::string> events = events_of(reply.body);
    ASSERT_EQ(events.size(), lines.size() + 1);
    for (size_t i = 0; i < lines.size(); ++i) {
        const json event = json::parse(events[i]);
        json expected = json::parse(lines[i]);
        expected.erase("source");
        EXPECT_EQ(event["segment"], expected);
        EXPECT_EQ(event["delta"], expected["text"]);
    }
    const json done = json::parse(events.back());
    EXPECT_EQ(done["language"], "english");
    EXPECT_GT(done["duration"], 1.0);
}

TEST(HarkServeAudio, LanguagesAndTranslations) {
    const TestReply german = transcribe_file(
        sample_bytes("vater.wav"), {{"language", "de"}, {"response_format", "verbose_json"}});
    EXPECT_EQ(json::parse(german.body)["language"], "german");
    EXPECT_EQ(json::parse(german.body)["text"].get<std::string>() + "\n",
              pipe_text("vater.wav", "--language de"));
    const TestReply english = transcribe_file(
        sample_bytes("vater.wav"), {{"response_format", "text"}}, "/v1/audio/translations");
    EXPECT_EQ(english.body, pipe_text("vater.wav", "--task translate"));
}

TEST(HarkServeAudio, RecordingsOfOneBatchAreNotMixed) {
    struct Request {
        std::string file, path;
        std::map<std::string, std::string> fields;
    };
    const std::string translations = "/v1/audio/translations";
    const std::map<std::string, std::string> words = {{"response_format", "verbose_json"},
                                                      {"timestamp_granularities[]", "word"}};
    const std::vector<Request> requests = {
        {"hat.wav", kTranscriptions, {{"response_format", "text"}}},
        {"vater.wav", kTranscriptions, {{"language", "de"}, {"response_format", "srt"}}},
        {"vater.wav", translations, {{"response_format", "text"}}},
        {"train.wav", kTranscriptions, words},
        {"key.wav",
         kTranscriptions,
         {{"prompt", "The quay."}, {"response_format", "vtt"}, kEnglish}},
        {"lights.wav",
         kTranscriptions,
         {{"temperature", "0.7"}, {"response_format", "text"}, kEnglish}},
        {"news.mp4", kTranscriptions, {{"vad_filter", "true"}, {"response_format", "text"}}},
        {"silence.wav", kTranscriptions, {{"response_format", "text"}, kEnglish}},
        {"jardin.mp3", kTranscriptions, {{"response_format", "json"}}},
        {"hat.wav",
         kTranscriptions,
         {{"hotwords", "hat fire"}, {"response_format", "json"}, kEnglish}}};
    std::vector<std::string> alone, together(requests.size());
    for (const Request& one : requests)
        alone.push_back(transcribe_file(sample_bytes(one.file), one.fields, one.path).body);
    std::vector<std::thread> clients;
    for (size_t i = 0; i < requests.size(); ++i)
        clients.emplace_back([&, i] {
            const Request& one = requests[i];
            together[i] = transcribe_file(sample_bytes(one.file), one.fields, one.path).body;
        });
    for (std::thread& client : clients) client.join();
    EXPECT_EQ(together, alone);
    EXPECT_EQ(alone[0], pipe_text("hat.wav", ""));
    EXPECT_EQ(alone[6], pipe_text("news.mp4", "--vad"));
    EXPECT_EQ(alone[5], pipe_text("lights.wav", "--temperature 0.7 --language en"));
}

TEST(HarkServeAudio, AShortRecordingDoesNotWaitForALongOne) {
    const Served server({"--model", kSpeechDemo});
    TestClient longer(server.address());
    longer.send(form_request(kTranscriptions, noise_wav(1, 300 * 16000), {}));
    await_metric(server, kRunning, 1);
    TestClient shorter(server.address());
    shorter.send(form_request(kTranscriptions, sample_bytes("hat.wav"), {}));
    EXPECT_EQ(shorter.receive().status, 200);
    EXPECT_EQ(server.metric(kRunning), 1);
}

TEST(HarkServeAudio, WhatIsNoRecordingIsRefused) {
    expect_refused(transcribe_file("no audio at all"), 400, "cannot be decoded");
    expect_refused(transcribe_file(""), 400, "the file is empty");
    expect_refused(transcribe_file(sample_bytes("story.mp3")), 400, "longer than 20 seconds");
    expect_refused(transcribe_file(sample_bytes("hat.wav"), {{"model", "other"}}), 404, "'other'");
    expect_refused(transcribe_file(sample_bytes("hat.wav"), {{"frobnicate", "1"}}), 400,
                   "frobnicate");
    expect_refused(audio_server().post(kTranscriptions, {{"model", "whisper-demo"}}), 415,
                   "multipart/form-data");
    TestClient client(audio_server().address());
    client.send(request_text("POST", kTranscriptions, "--b\r\nnonsense",
                             {"Content-Type: multipart/form-data; boundary=b"}));
    EXPECT_EQ(client.receive().status, 400);
    // Of one that was cut, the rest is transcribed.
    const std::string whole = sample_bytes("hat.wav");
    EXPECT_EQ(transcribe_file(whole.substr(0, whole.size() / 2)).status, 200);
    EXPECT_EQ(audio_server().get("/health").status, 200);
}

TEST(HarkServeAudio, AClientThatLeavesEndsItsTranscript) {
    const Served server({"--model", kSpeechDemo});
    {
        TestClient client(server.address());
        client.send(form_request(kTranscriptions, noise_wav(1, 300 * 16000), {}));
        await_metric(server, kRunning, 1);
    }
    await_metric(server, kRunning, 0);
    EXPECT_EQ(server.metric("hark_audio_seconds_total{model_name=\"whisper-demo\"}"), 0);
    TestClient next(server.address());
    next.send(form_request(kTranscriptions, sample_bytes("hat.wav"), {}));
    EXPECT_EQ(next.receive().status, 200);
}

TEST(HarkServeAudio, OneNameMayBeModelsOfBothKinds) {
    Served server({"--model", "demo"});
    EXPECT_EQ(json::parse(server.get("/v1/models").body)["data"].size(), 1u);
    json request = completion("Once");
    request["model"] = "demo";
    EXPECT_EQ(server.post("/v1/completions", request).status, 200);
    TestClient client(server.address());
    client.send(form_request(kTranscriptions, sample_bytes("hat.wav"), {{"model", "demo"}}));
    EXPECT_EQ(client.receive().status, 200);
    server.tool().signal(SIGTERM);
    EXPECT_EQ(server.tool().wait(), 0);
}
