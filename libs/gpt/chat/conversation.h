// A chat's messages so far, in memory or in a file: JSON lines, one message each.
#pragma once

#include <string>

#include "core/json/json.h"

namespace hark::gpt {

class Conversation {
  public:
    // An empty path: in memory. A file that does not exist is an empty conversation, which begins
    // with the system's message if one is given. Throws Error "FILE: line N: ..." for a line that
    // is not a message, for a last message that has no answer, and for a file that begins with
    // another message of the system, and where the file could not be written.
    Conversation(std::string path, const std::string& system);

    const nlohmann::ordered_json& messages() const { return messages_; }
    // Adds both messages. The file then has both, or is as before. Throws Error if it was changed
    // since it was read, or cannot be written.
    void append(const std::string& question, const std::string& answer);

  private:
    void read();

    std::string path_;
    std::string written_;  // the file's bytes
    nlohmann::ordered_json messages_ = nlohmann::ordered_json::array();
    size_t in_file_ = 0;  // messages
};

}  // namespace hark::gpt
