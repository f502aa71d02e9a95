// A shell command on a terminal of its own (a pseudo-terminal), and what a person sees there.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace hark::test {

class Terminal {
  public:
    // Starts the command in bash with build/bin first on the PATH; all of stdin, stdout and stderr
    // that it does not redirect is the terminal.
    explicit Terminal(const std::string& command, int columns = 80);
    ~Terminal();
    Terminal(const Terminal&) = delete;
    Terminal& operator=(const Terminal&) = delete;

    // Reads until `text` has come after the text that was last waited for; false if the command
    // ends without it.
    bool wait_for(const std::string& text);
    // As from the keyboard: "\x03" is Ctrl-C.
    void type(const std::string& keys);
    // Reads to the end. Returns the exit status, or -signal if a signal ended the command.
    int finish();

    // All that was written to the terminal so far.
    const std::string& bytes() const { return bytes_; }
    // The lines that are on the screen after it, which never scrolls, without colours.
    std::vector<std::string> screen() const;

  private:
    bool read_more();

    int columns_;
    int master_ = -1;
    pid_t child_ = -1;
    std::string bytes_;
    size_t waited_ = 0;  // end of the text that was last waited for
};

}  // namespace hark::test
