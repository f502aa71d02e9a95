// The folders that hark writes to, and how fast models are read.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "operations/doctor/finding.h"

namespace hark::doctor {

struct FolderReading {
    std::filesystem::path path;   // if it does not exist, the rest is of the nearest one above it
    std::string error;            // why nothing is known of it; empty if all went well
    std::string type;             // of its file system: "ext2 to ext4", "tmpfs"; empty if not known
    bool in_memory = false;       // tmpfs, ramfs
    bool exists = true;           // not only the folder above
    bool writable = true;         // by this user
    bool files_full = false;      // no further file can be made, whatever the free bytes
    int64_t free = 0, total = 0;  // bytes, for this user
};
FolderReading read_folder(const std::filesystem::path& path);

// What a folder is for, and how much free space it should have.
struct FolderUse {
    const char* check;   // "disk.models"
    const char* what;    // "models"
    double wanted;       // bytes
    bool must_write;     // fail if it cannot be written to
    bool must_keep;      // its files are needed after a restart
    const char* remedy;  // for little space
    const char* variable = nullptr;  // that names another folder
};
inline constexpr FolderUse kModelsUse = {
    "disk.models", "models",
    4e9,           false,
    true,          "hark model rm MODEL, or another disk by XDG_DATA_HOME; large-v3 takes 3.1 GB"};
inline constexpr FolderUse kTemporaryUse = {"disk.temporary",
                                            "temporary files",
                                            1e9,
                                            true,
                                            false,
                                            "remove files there, or set TMPDIR to another folder",
                                            "TMPDIR"};
inline constexpr FolderUse kHereUse = {
    "disk.here", "output", 1e9, false, false, "remove files there, or work in another folder"};

void judge_folder(const FolderReading& reading, const FolderUse& use, const Say& say);
// disk.here
void check_current_folder(const Say& say);

struct ReadReading {
    std::filesystem::path file;  // empty: there is none that is large enough
    std::string why_not;         // why it was not measured; empty if it was
    double mb_per_s = 0;
};
// Reads for up to `seconds`, past the memory that holds files already read (O_DIRECT).
ReadReading read_file_speed(const std::filesystem::path& file, double seconds);
// disk.read
void judge_read(const ReadReading& reading, const Say& say);

// Where temporary files are made: TMPDIR, else /tmp.
std::filesystem::path temporary_folder();

}  // namespace hark::doctor
