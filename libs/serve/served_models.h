// The models of a server, and their services.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "serve/audio/audio_service.h"
#include "serve/serve_options.h"
#include "serve/text/text_service.h"

namespace hark::serve {

class ServedModels {
  public:
    // Reads all models. Throws Error naming the one that cannot be read, and for two models of one
    // kind with the same name.
    ServedModels(const ServeOptions& options, Console& console);

    // Starts their threads. `post` and `broken` are those of TextService.
    void start(const ServeOptions& options, const TextService::Post& post,
               const std::function<void(const std::string&)>& broken);
    std::vector<TextService*> texts() const;
    std::vector<AudioService*> audios() const;

  private:
    struct Text {
        std::string name;
        std::unique_ptr<TextModel> model;
        std::unique_ptr<TextService> service;
    };

    struct Audio {
        std::string name;
        std::unique_ptr<AudioModel> model;
        std::unique_ptr<AudioService> service;
    };

    void read(const std::string& given, const ServeOptions& options, Console& console);

    std::vector<Text> texts_;
    std::vector<Audio> audios_;
};

}  // namespace hark::serve
