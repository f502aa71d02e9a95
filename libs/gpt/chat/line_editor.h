// Lines that a person types on a terminal, with editing keys and a history.
#pragma once

#include <memory>
#include <optional>
#include <string>

namespace hark::gpt {

class LineEditor {
  public:
    // Shows the prompt and what is typed on stderr.
    explicit LineEditor(const std::string& prompt);
    ~LineEditor();

    // The next line without its end; a \ at a line's end continues it on the next one. Ctrl-C drops
    // what has been typed. nullopt after Ctrl-D on an empty line.
    std::optional<std::string> next();

  private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace hark::gpt
