#include "serve/audio/decoder_process.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>

#include "core/error.h"
#include "core/machine/program_path.h"

namespace hark::serve {
namespace {

constexpr rlim_t kCpuSeconds = 900;
// The sanitizers reserve terabytes for their own tables.
#ifdef __SANITIZE_ADDRESS__
constexpr rlim_t kMemoryBytes = RLIM_INFINITY;
#else
constexpr rlim_t kMemoryBytes = rlim_t{2} << 30;
#endif

void limit(pid_t child, __rlimit_resource what, rlim_t most) {
    const rlimit value = {most, most};
    ::prlimit(child, what, &value, nullptr);
}

// The signals of a shell's child: this program holds some back, and ignores others.
struct SpawnAttributes {
    SpawnAttributes() {
        ::posix_spawnattr_init(&value);
        sigset_t none, pipe;
        sigemptyset(&none);
        sigemptyset(&pipe);
        sigaddset(&pipe, SIGPIPE);
        ::posix_spawnattr_setsigmask(&value, &none);
        ::posix_spawnattr_setsigdefault(&value, &pipe);
        ::posix_spawnattr_setflags(&value, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    }
    ~SpawnAttributes() { ::posix_spawnattr_destroy(&value); }
    posix_spawnattr_t value;
};

}  // namespace

std::string decoder_program() {
    const std::filesystem::path path = program_path().parent_path() / "audio-decode";
    require(::access(path.c_str(), X_OK) == 0, path.string(),
            ": not there; a Whisper model needs it next to hark-serve");
    return path.string();
}

DecoderProcess::DecoderProcess(const std::string& program, int file) {
    int out[2];
    require(::pipe2(out, O_CLOEXEC) == 0, "cannot make a pipe: ", std::strerror(errno));
    ::lseek(file, 0, SEEK_SET);
    SpawnAttributes attributes;
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, file, STDIN_FILENO);
    ::posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
    // What it says of the file is in its stream too.
    ::posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    // Others' uploads and connections, also those that have just been opened without O_CLOEXEC.
    ::posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
    const char* const arguments[] = {"audio-decode", "--quiet", "--allow-truncated", "-", nullptr};
    const int failure = ::posix_spawn(&child_, program.c_str(), &actions, &attributes.value,
                                      const_cast<char* const*>(arguments), environ);
    ::posix_spawn_file_actions_destroy(&actions);
    ::close(out[1]);
    out_ = out[0];
    if (failure != 0) ::close(out_);
    require(failure == 0, program, ": cannot be started: ", std::strerror(failure));
    // Set after its start: posix_spawn has no limits, and fork would copy a model's page tables.
    limit(child_, RLIMIT_CPU, kCpuSeconds);
    limit(child_, RLIMIT_DATA, kMemoryBytes);
    limit(child_, RLIMIT_CORE, 0);
}

DecoderProcess::~DecoderProcess() {
    ::close(out_);
    ::kill(child_, SIGKILL);
    while (::waitpid(child_, nullptr, 0) < 0 && errno == EINTR) continue;
}

}  // namespace hark::serve
