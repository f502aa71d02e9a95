// /v1/audio/live: a WebSocket whose client sends sound and is sent lines.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "serve/audio/live_job.h"
#include "serve/models/served_model.h"
#include "serve/web/socket.h"

namespace hark::serve {

class AudioService;

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
    LiveAnswer(LiveQuery query, std::shared_ptr<WebSocket> socket)
        : job_(std::make_shared<LiveJob>(query.rate, std::move(query.options))),
          socket_(std::move(socket)) {}

    // Once the model is there, whose lease is held; until then the client has to wait. Throws
    // WebError if it cannot begin.
    void start(AudioService& service, ModelLease lease);
    // The server is about to end: what has come is transcribed, and no more.
    void drain();
    // Whether the client is not there any more.
    bool has_left() const { return job_->is_cancelled; }

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
    void wake();

    AudioService* service_ = nullptr;  // before start()
    ModelLease lease_;
    std::shared_ptr<LiveJob> job_;
    std::shared_ptr<WebSocket> socket_;
    bool has_ended_ = false;  // the sound
    bool is_drained_ = false;
};

}  // namespace hark::serve
