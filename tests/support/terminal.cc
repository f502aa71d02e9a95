#include "support/terminal.h"

#include <pty.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <stdexcept>

namespace hark::test {
namespace {

// Text, carriage returns, line ends, "erase to the end of the line"; colours are left out, and
// anything else is an error: the tools have no need of it. A wide character counts as one column.
class Screen {
  public:
    explicit Screen(size_t columns) : columns_(columns) {}

    void add(const std::string& bytes) {
        for (size_t at = 0; at < bytes.size();) {
            const char byte = bytes[at];
            if (byte == '\033') {
                at = escape(bytes, at);
            } else if (byte == '\r') {
                ++at, column_ = 0;
            } else if (byte == '\n') {
                ++at, new_line();
            } else {
                size_t end = at + 1;
                while (end < bytes.size() && (bytes[end] & 0xc0) == 0x80) ++end;
                put(bytes.substr(at, end - at));
                at = end;
            }
        }
    }

    std::vector<std::string> lines() const {
        std::vector<std::string> texts;
        for (const auto& cells : cells_) {
            std::string text;
            for (const std::string& cell : cells) text += cell.empty() ? " " : cell;
            text.erase(text.find_last_not_of(' ') + 1);
            texts.push_back(text);
        }
        while (!texts.empty() && texts.back().empty()) texts.pop_back();
        return texts;
    }

  private:
    // Returns where the text continues.
    size_t escape(const std::string& bytes, size_t at) {
        const size_t end = bytes.find_first_not_of("0123456789;", at + 2);
        if (bytes[at + 1] != '[' || end == bytes.npos) throw std::runtime_error("unknown escape");
        if (bytes[end] == 'K')
            cells_[row_].resize(std::min(column_, cells_[row_].size()));
        else if (bytes[end] != 'm')
            throw std::runtime_error("unknown escape");
        return end + 1;
    }

    void put(const std::string& character) {
        if (column_ == columns_) column_ = 0, new_line();
        if (cells_[row_].size() <= column_) cells_[row_].resize(column_ + 1);
        cells_[row_][column_++] = character;
    }

    void new_line() {
        ++row_;
        if (row_ == cells_.size()) cells_.emplace_back();
    }

    size_t columns_, row_ = 0, column_ = 0;
    std::vector<std::vector<std::string>> cells_{1};  // by line
};

}  // namespace

Terminal::Terminal(const std::string& command, int columns) : columns_(columns) {
    winsize size{50, static_cast<unsigned short>(columns), 0, 0};
    child_ = ::forkpty(&master_, nullptr, nullptr, &size);
    if (child_ < 0) throw std::runtime_error("forkpty failed");
    if (child_ == 0) {
        ::setenv("TERM", "xterm-256color", 1);
        ::unsetenv("NO_COLOR");
        ::signal(SIGINT, SIG_DFL);
        const std::string line = "PATH=\"" HARK_BIN_DIR ":$PATH\"; " + command;
        ::execl("/bin/bash", "bash", "-c", line.c_str(), nullptr);
        ::_exit(127);
    }
}

Terminal::~Terminal() {
    if (child_ > 0) {
        ::kill(child_, SIGKILL);
        ::waitpid(child_, nullptr, 0);
    }
    ::close(master_);
}

bool Terminal::read_more() {
    char piece[4096];
    ssize_t got = 0;
    do got = ::read(master_, piece, sizeof piece);
    while (got < 0 && errno == EINTR);
    if (got <= 0) return false;  // EIO: nobody has the terminal open any more
    bytes_.append(piece, static_cast<size_t>(got));
    return true;
}

bool Terminal::wait_for(const std::string& text) {
    size_t found;
    while ((found = bytes_.find(text, waited_)) == bytes_.npos)
        if (!read_more()) return false;
    waited_ = found + text.size();
    return true;
}

void Terminal::type(const std::string& keys) {
    if (::write(master_, keys.data(), keys.size()) != static_cast<ssize_t>(keys.size()))
        throw std::runtime_error("cannot type");
}

int Terminal::finish() {
    while (read_more()) {
    }
    int status = 0;
    while (::waitpid(child_, &status, 0) < 0 && errno == EINTR) {
    }
    child_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

std::vector<std::string> Terminal::screen() const {
    Screen screen(static_cast<size_t>(columns_));
    screen.add(bytes_);
    return screen.lines();
}

}  // namespace hark::test
