// A language model in the server's memory, and its service.
#pragma once

#include <memory>

#include "serve/models/served_model.h"
#include "serve/models/server_thread.h"
#include "serve/text/text_service.h"

namespace hark::serve {

class TextServed : public ServedModel {
  public:
    TextServed(std::unique_ptr<TextModel> model, TextServiceOptions options,
               std::shared_ptr<const ServerThread> thread);
    ~TextServed() override;

    ModelKind kind() const override { return ModelKind::text; }
    void begin() override;
    void stop() override;
    int64_t bytes() const override;
    TextService& service() { return *service_; }
    // In place of begin(), on ranks other than the first: computes what that one does.
    void follow();

  private:
    std::unique_ptr<TextModel> model_;
    TextServiceOptions options_;
    std::shared_ptr<const ServerThread> thread_;
    std::unique_ptr<TextService> service_;
};

}  // namespace hark::serve
