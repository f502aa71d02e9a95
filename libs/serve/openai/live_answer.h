// /v1/audio/live: a WebSocket whose client sends sound and is sent lines.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "serve/audio/audio_service.h"
#include "serve/web/socket.h"

namespace hark::serve {

struct LiveQuery {
    std::string model;
    int rate = 16000;  // samples per second
    whisper::TranscribeOptions options;
};
// Throws WebError 400 that names the field that is wrong.
LiveQuery read_live_query(const std::vector<std::pair<std::string, std::string>>& query);

class LiveAnswer : public SocketListener,
                   public LiveListener,
                   public std::enable_shared_from_this<LiveAnswer> {
  public:
    // Throws WebError if it cannot begin.
    static std::shared_ptr<LiveAnswer> start(AudioService& service, LiveQuery query,
                                             std::shared_ptr<WebSocket> socket);

    LiveAnswer(AudioService& service, std::shared_ptr<LiveJob> job,
               std::shared_ptr<WebSocket> socket)
        : service_(service), job_(std::move(job)), socket_(std::move(socket)) {}

    // The server is about to end: what has come is transcribed, and no more.
    void drain();

    void binary(std::string_view bytes) override;
    void text(std::string_view text) override;
    Wants wants() const override;
    void left() override;

    void line(const std::string& line) override { socket_->send(line); }
    void has_room() override { socket_->resume(); }
    void ended() override;
    void failed(const WebError& why) override;

  private:
    void end_input();

    AudioService& service_;
    std::shared_ptr<LiveJob> job_;
    std::shared_ptr<WebSocket> socket_;
    bool has_ended_ = false;  // the sound
    bool is_drained_ = false;
};

}  // namespace hark::serve
