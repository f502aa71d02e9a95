// A tool that runs while a test talks to it.
#pragma once

#include <sys/types.h>

#include <string>
#include <thread>
#include <vector>

namespace hark::test {

class BackgroundTool {
  public:
    // Starts a tool of build/bin with nothing on stdin. Waits until stderr has a line that begins
    // with `awaited`; throws if the tool ends before.
    BackgroundTool(const std::string& tool, const std::vector<std::string>& arguments,
                   const std::string& awaited);
    // The same of any command, whose first word is a path.
    BackgroundTool(const std::vector<std::string>& command, const std::string& awaited);
    // Kills it if it still runs. Prints the stderr of one that has ended by an error unawaited.
    ~BackgroundTool();
    BackgroundTool(const BackgroundTool&) = delete;

    // The rest of the awaited line.
    const std::string& said() const { return said_; }
    pid_t pid() const { return child_; }
    void signal(int number) const;
    // Waits for its end: the exit status, or -signal where a signal ended it. Then err() has all
    // that it wrote to stderr.
    int wait();
    const std::string& err() const { return err_; }

  private:
    pid_t child_ = -1;
    int stderr_ = -1;
    std::string said_, err_;
    std::thread reader_;
};

}  // namespace hark::test
