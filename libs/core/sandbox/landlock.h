// Landlock: a process gives up the file system.
#pragma once

#include <string>
#include <vector>

namespace hark {

// The version of the kernel's Landlock (its ABI), which grows with what it can restrict; 0 if there
// is none, and errno says why.
long landlock_version();

// Lets this thread, and those that it starts, open only the files in `readable` for reading, and
// list the folders in it. With newer kernels TCP, abstract sockets and signals to others are
// refused too. no_new_privs must be set. Returns what the kernel lacks, empty if nothing: without
// Landlock (Linux 5.13) nothing is restricted.
std::string restrict_files(const std::vector<std::string>& readable);

}  // namespace hark
