// seccomp: a process gives up system calls.
#pragma once

#include <string>

namespace hark {

// Refuses, in all threads, with EPERM what a decoder never does and what would help to break out:
// sockets, programs and other processes, tracing and signals, changes of files and mounts, the
// kernel's rarely used parts, and ioctl (it could type into the terminal of stderr). no_new_privs
// must be set. Returns what the kernel lacks, empty if nothing.
std::string filter_system_calls();

}  // namespace hark
