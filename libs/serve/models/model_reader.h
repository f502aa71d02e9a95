// From the file of a model to its service.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "serve/audio/audio_service.h"
#include "serve/models/model_pool.h"
#include "serve/serve_options.h"
#include "serve/text/text_service.h"

namespace hark::serve {

// How the models reach the server's thread, as ModelPoolOptions and TextService have it.
struct ServerThread {
    std::function<void(std::function<void()>)> post;
    std::function<void(double seconds, std::function<void()>)> post_later;
    std::function<void(const std::string&)> broken;
};

class TextServed : public ServedModel {
  public:
    TextServed(std::unique_ptr<TextModel> model, TextServiceOptions options,
               std::shared_ptr<const ServerThread> thread)
        : model_(std::move(model)), options_(std::move(options)), thread_(std::move(thread)) {}

    ModelKind kind() const override { return ModelKind::text; }
    void begin() override;
    void stop() override { service_->stop(); }
    int64_t bytes() const override { return model_->bytes(); }
    TextService& service() { return *service_; }
    // In place of begin(), on ranks other than the first: computes what that one does.
    void follow();

  private:
    std::unique_ptr<TextModel> model_;
    TextServiceOptions options_;
    std::shared_ptr<const ServerThread> thread_;
    std::unique_ptr<TextService> service_;
};

class AudioServed : public ServedModel {
  public:
    AudioServed(std::unique_ptr<AudioModel> model, AudioServiceOptions options,
                std::shared_ptr<const ServerThread> thread)
        : model_(std::move(model)), options_(std::move(options)), thread_(std::move(thread)) {}

    ModelKind kind() const override { return ModelKind::audio; }
    void begin() override;
    void stop() override { service_->stop(); }
    int64_t bytes() const override { return model_->bytes(); }
    AudioService& service() { return *service_; }

  private:
    std::unique_ptr<AudioModel> model_;
    AudioServiceOptions options_;
    std::shared_ptr<const ServerThread> thread_;
    std::unique_ptr<AudioService> service_;
};

class ModelReader {
  public:
    ModelReader(const ServeOptions& options, Console& console);

    // `is_named`: on the command line. Then --chat-template is its template, and a --context that
    // it does not have is an error. Throws Error as the readers do.
    OpenedModel open(const std::string& path, bool is_named) const;
    // Throws Error as the readers do, and OutOfMemory.
    std::shared_ptr<ServedModel> read(const std::string& name, const OpenedModel& opened,
                                      int64_t cache_bytes) const;
    // Bytes that all models may take: of the memory that was free when the server began, on the
    // rank that had the least.
    int64_t memory() const { return memory_; }
    // What the bits of a product depend on: the GPU, or the processor's kernels and threads.
    std::string computes_with() const;
    // Before the first model's begin().
    void use(ServerThread thread) { *thread_ = std::move(thread); }

  private:
    TextModelOptions text_options(const gpt::ModelFile& file, bool is_named) const;

    const ServeOptions& options_;
    Console& console_;
    Context ctx_;  // of the device
    int64_t memory_;
    std::shared_ptr<ServerThread> thread_ = std::make_shared<ServerThread>();
};

}  // namespace hark::serve
