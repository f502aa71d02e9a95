// A model in the server's memory, of either kind.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace hark::serve {

enum class ModelKind { text, audio };

struct ModelFacts {
    ModelKind kind = ModelKind::text;
    bool has_chats = false;              // a language model with a chat template
    int64_t context = 0;                 // of a language model, in tokens
    std::vector<std::string> languages;  // of a Whisper model: their codes
};

class ServedModel {
  public:
    // After stop(). Gives the model's memory back.
    virtual ~ServedModel() = default;

    virtual ModelKind kind() const = 0;
    // Takes requests from now on. For the server's thread.
    virtual void begin() = 0;
    // Ends its threads, and takes no requests any more. All that they post to the server's thread
    // has been posted then. Any thread may call it.
    virtual void stop() = 0;
    // Of its weights, its caches and, as far as it has been used, its scratch. Any thread may call
    // it.
    virtual int64_t bytes() const = 0;
};

// Held by a request as long as it uses a model, which is not unloaded meanwhile. May be dropped on
// any thread.
using ModelLease = std::shared_ptr<void>;

}  // namespace hark::serve
