// hark-serve's live transcription on the real binary: its lines are those of the pipe.
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <thread>

#include "support/audio.h"
#include "support/recordings.h"
#include "support/web_socket.h"
#include "tools/hark_serve.h"

using namespace hark::test;

namespace {

using Milliseconds = std::chrono::milliseconds;

const std::string kTarget = "/v1/audio/live?model=whisper-demo";
const std::string kLiveMetric = "hark_audio_live_sessions{model_name=\"whisper-demo\"}";

Served& live_server() {
    static Served server({"--model", kSpeechDemo});
    return server;
}

std::string pcm(const std::string& sample) {
    const std::string wav = read_text(samples_dir() / sample);
    return wav.substr(44);
}

// Waits until the process has had nothing to do for a while.
void await_idle(pid_t pid) {
    const auto state = [&] {
        std::string all;
        for (const auto& task :
             std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/task")) {
            const std::string stat = read_text(task.path() / "stat");
            std::istringstream in(stat.substr(stat.rfind(')') + 2));
            std::string word;
            for (int i = 0; i < 13; ++i) {  // the state; user and system time
                in >> word;
                if (i == 0 || i > 10) all += word + " ";
            }
        }
        return all;
    };
    std::string last;
    for (int equal = 0; equal < 8;) {
        const std::string now = state();
        equal = now == last && now.find('R') == now.npos ? equal + 1 : 0;
        last = now;
        std::this_thread::sleep_for(Milliseconds(20));
    }
}

// The documents of a tensor stream.
std::vector<std::string> documents_of(const std::string& stream) {
    std::vector<std::string> documents;
    for (size_t at = 0; at < stream.size();) {
        uint64_t header = 0;
        for (size_t i = 0; i < 8; ++i)
            header |= uint64_t{static_cast<unsigned char>(stream[at + i])} << (8 * i);
        size_t data = 0;
        const json parsed = json::parse(stream.substr(at + 8, header));
        for (const auto& [name, tensor] : parsed.items())
            if (name != "__metadata__")
                data = std::max(data, tensor["data_offsets"][1].get<size_t>());
        documents.push_back(stream.substr(at, 8 + header + data));
        at += documents.back().size();
    }
    return documents;
}

// What the pipe writes if it is idle before each second of sound.
std::string pipe_lines(const std::string& sound, int rate, const std::string& more) {
    const TemporaryDirectory directory;
    const std::string at = directory.path().string();
    const ProcessResult mel = run_tool(
        "mel", {"--raw", "s16le", "--sample-rate", std::to_string(rate), "--chunk", "1"}, sound);
    FILE* const pipe = ::popen(
        ("echo $$ > '" + at + "/pid'; exec '" + (build_dir() / "bin/whisper-transcribe").string() +
         "' --model demo --threads 1 --live " + more + " > '" + at + "/out' 2> /dev/null")
            .c_str(),
        "w");
    while (!std::filesystem::exists(directory.path() / "pid") ||
           read_text(directory.path() / "pid").empty())
        std::this_thread::sleep_for(Milliseconds(5));
    const pid_t pid = std::stoi(read_text(directory.path() / "pid"));
    for (const std::string& document : documents_of(mel.out)) {
        await_idle(pid);
        std::fwrite(document.data(), 1, document.size(), pipe);
        std::fflush(pipe);
    }
    ::pclose(pipe);  // 1 for half a sample
    return read_text(directory.path() / "out");
}

// What the server sends if it is idle before each second of sound.
std::string served_lines(const std::string& sound, int rate, const std::string& more) {
    TestSocket socket(live_server().address(), kTarget + more + "&rate=" + std::to_string(rate));
    EXPECT_EQ(socket.reply().status, 101) << socket.reply().body;
    const size_t second = static_cast<size_t>(rate) * 2;
    // A second's last frames need some of the sound after it.
    for (size_t at = 0, size = second + second / 10; at + size <= sound.size();
         at += std::exchange(size, second)) {
        await_idle(live_server().tool().pid());
        // A frame's samples may be cut anywhere.
        socket.send_sound(sound.substr(at, 999));
        socket.send_sound("");
        socket.send_sound(sound.substr(at + 999, size - 999));
        if (at + 2 * size > sound.size()) socket.send_sound(sound.substr(at + size));
    }
    await_idle(live_server().tool().pid());
    socket.send_text("end");
    SocketMessage last;
    const std::string lines = socket.receive_lines(&last);
    EXPECT_EQ(last.opcode, 8);
    EXPECT_EQ(last.code, 1000);
    return lines;
}

std::string finals_of(const std::string& lines) {
    std::string text;
    for (const std::string& line : lines_of(lines)) {
        const json event = json::parse(line);
        if (event["event"] == "final") text += event["text"].get<std::string>();
    }
    return text;
}

void await_live(const Served& server, double value) {
    for (int i = 0; i < 6000 && server.metric(kLiveMetric) != value; ++i)
        std::this_thread::sleep_for(Milliseconds(10));
    EXPECT_EQ(server.metric(kLiveMetric), value);
}

}  // namespace

TEST(HarkServeLive, LinesAreThoseOfThePipe) {
    const std::string english = (pcm("hat.wav") + std::string(32000, '\0') + pcm("key.wav"));
    const std::string sound = english.substr(0, 6 * 32000 + 16000);
    const std::string expected = pipe_lines(sound, 16000, "");
    EXPECT_NE(expected.find("\"partial\""), expected.npos);
    EXPECT_NE(expected.find("\"final\""), expected.npos);
    EXPECT_EQ(served_lines(sound, 16000, ""), expected);
    // The same bytes as a sound of another speed, in another language, with half a sample.
    const std::string cut = sound.substr(0, 60001);
    EXPECT_EQ(served_lines(cut, 11025, "&language=German"),
              pipe_lines(cut, 11025, "--language German"));
}

TEST(HarkServeLive, SessionsAndRecordingsShareTheModel) {
    const Served server({"--model", kSpeechDemo});
    // A recording that takes long.
    TestClient recording(server.address());
    recording.send(form_request("/v1/audio/transcriptions", noise_wav(1, 600 * 16000)));
    const std::string running = "hark_audio_requests_running{model_name=\"whisper-demo\"}";
    await_metric(server, running, 1);
    TestSocket one(server.address(), kTarget), other(server.address(), kTarget);
    one.send_sound(pcm("hat.wav"));
    other.send_sound(pcm("lights.wav"));
    one.send_text("end");
    other.send_text("end");
    EXPECT_EQ(finals_of(one.receive_lines()), " He took off his hat and sat down by the fire.");
    EXPECT_EQ(finals_of(other.receive_lines()), " Turn off the lights in the kitchen.");
    EXPECT_EQ(server.metric(running), 1);
    await_live(server, 0);
}

TEST(HarkServeLive, NothingSaidIsNothingSent) {
    TestSocket socket(live_server().address(), kTarget);
    socket.send_text("end");
    SocketMessage last;
    EXPECT_EQ(socket.receive_lines(&last), "");
    EXPECT_EQ(last.code, 1000);
}

TEST(HarkServeLive, WrongRequestsAreRefusedBeforeTheUpgrade) {
    const std::string address = live_server().address();
    const auto refused = [&](const std::string& target, int status, const std::string& message,
                             const TestClient::Headers& headers = {}) {
        expect_refused(TestSocket(address, target, headers).reply(), status, message);
    };
    for (const char* const rate : {"", "0", "-1", "1e4", "16000x", "3999", "192001", "9999999999"})
        refused(kTarget + "&rate=" + rate, 400, "rate");
    refused("/v1/audio/live", 400, "model");
    refused("/v1/audio/live?model=other", 404, "no Whisper model 'other'");
    refused(kTarget + "&language=klingon", 400, "klingon");
    refused(kTarget + "&frobnicate=1", 400, "frobnicate");
    // A page of another server; its own page may.
    const std::string host = address.substr(address.rfind('/') + 1);
    refused(kTarget, 403, "found 'http://example.org'", {"Origin: http://example.org"});
    refused(kTarget, 403, "found 'null'", {"Origin: null"});
    refused(kTarget, 403, "Origin", {"Origin: http://127.0.0.1:1"});
    EXPECT_EQ(TestSocket(address, kTarget, {"Origin: http://127.0.0.1"}).reply().status, 101);
    expect_refused(live_server().get(kTarget), 400, "Upgrade: websocket");
    expect_refused(live_server().post(kTarget, json::object()), 405, "takes GET");
    await_live(live_server(), 0);
}

TEST(HarkServeLive, KeysMayBeASubprotocol) {
    const TemporaryDirectory directory;
    write_text(directory.path() / "keys", "sk/right=\n");
    const Served server(
        {"--model", kSpeechDemo, "--api-keys", (directory.path() / "keys").string()});
    const auto reply = [&](const std::string& header) {
        return TestSocket(server.address(), kTarget, {header, "Origin: http://example.org"})
            .reply();
    };
    EXPECT_EQ(reply("X: y").status, 401);
    EXPECT_EQ(reply("Authorization: Bearer sk/right=").status, 101);
    const TestReply browser = reply("Sec-WebSocket-Protocol: hark, hark-key.sk%2Fright%3D");
    EXPECT_EQ(browser.status, 101);
    EXPECT_EQ(browser.headers.at("sec-websocket-protocol"), "hark");
    EXPECT_EQ(reply("Sec-WebSocket-Protocol: hark, hark-key.sk%2Fwrong%3D").status, 401);
    EXPECT_EQ(reply("Sec-WebSocket-Protocol: hark").status, 401);
}

TEST(HarkServeLive, WrongMessagesEndTheSession) {
    const auto code_after = [](const std::string& bytes) {
        TestSocket socket(live_server().address(), kTarget);
        socket.client().send(bytes);
        SocketMessage last;
        socket.receive_lines(&last);
        return last.code;
    };
    EXPECT_EQ(code_after(TestSocket::frame(1, "stop")), 1008);
    // Sound after the end, while the sound before it is transcribed.
    const std::string second(32000, '\x10');
    EXPECT_EQ(code_after(TestSocket::frame(2, second) + TestSocket::frame(1, "end") +
                         TestSocket::frame(2, "ab")),
              1008);
    EXPECT_EQ(code_after(TestSocket::frame(2, std::string((1 << 20) + 1, 'a'))), 1009);
    EXPECT_EQ(code_after(std::string("\x82\x01\x61", 3)), 1002);  // not masked
    EXPECT_EQ(code_after(TestSocket::frame(1, "\xff")), 1007);
    await_live(live_server(), 0);
}

TEST(HarkServeLive, TooManySessionsAreRefusedUntilOneLeaves) {
    const Served server({"--model", kSpeechDemo, "--max-live", "1"});
    {
        TestSocket first(server.address(), kTarget);
        first.send_sound(pcm("hat.wav"));
        const TestReply reply = TestSocket(server.address(), kTarget).reply();
        expect_refused(reply, 429, "too many live sessions (at most 1)");
        EXPECT_EQ(reply.headers.at("retry-after"), "1");
    }
    await_live(server, 0);
    EXPECT_EQ(TestSocket(server.address(), kTarget).reply().status, 101);
}

TEST(HarkServeLive, AClientThatIsTooFastIsHeldBack) {
    const Served server({"--model", kSpeechDemo});
    const auto resident_mb = [&] {
        const std::string status =
            read_text("/proc/" + std::to_string(server.tool().pid()) + "/status");
        return std::atoi(status.c_str() + status.find("VmRSS:") + 6) / 1024;
    };
    TestSocket socket(server.address(), kTarget);
    const std::string sound = noise_wav(1, 60 * 16000).substr(44, 960000);
    socket.send_sound(sound);  // its caches, and a window
    await_idle(server.tool().pid());
    const int before = resident_mb();
    constexpr int kMessages = 200;  // of half a minute: 190 MB
    std::atomic<int> sent = 0;
    std::thread sends([&] {
        while (sent < kMessages) socket.send_sound(sound), ++sent;
    });
    std::this_thread::sleep_for(Milliseconds(500));
    EXPECT_LT(sent, kMessages / 2);
    EXPECT_LT(resident_mb() - before, 90);  // 62 under AddressSanitizer, which keeps freed memory
    // It leaves while nothing of it is read.
    socket.client().hang_up();
    sends.join();
    await_live(server, 0);
}

TEST(HarkServeLive, ASilentClientIsCutOff) {
    const Served server({"--model", kSpeechDemo, "--client-timeout", "0.3"});
    TestSocket socket(server.address(), kTarget);
    SocketMessage last;
    socket.receive_lines(&last);
    EXPECT_EQ(last.code, 1008);
    await_live(server, 0);
}

TEST(HarkServeLive, SigtermMakesWhatHasComeFinal) {
    Served server({"--model", kSpeechDemo});
    TestSocket socket(server.address(), kTarget);
    socket.send_sound(pcm("hat.wav"));
    const SocketMessage first = socket.receive();
    expect_contains(first.data, "partial");
    server.tool().signal(SIGTERM);
    SocketMessage last;
    const std::string lines = first.data + "\n" + socket.receive_lines(&last);
    EXPECT_EQ(last.code, 1001);
    EXPECT_EQ(finals_of(lines), " He took off his hat and sat down by the fire.");
    EXPECT_EQ(server.tool().wait(), 0);
}
