#include "operations/doctor/disk.h"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "core/error.h"

namespace hark::doctor {
namespace {

namespace fs = std::filesystem;

// Source: Linux include/uapi/linux/magic.h; CIFS, SMB2 and FUSE in their own folders of fs/.
struct FileSystem {
    uint32_t magic;
    const char* name;
    bool in_memory = false;
};
constexpr FileSystem kFileSystems[] = {{0x01021994, "tmpfs", true},
                                       {0x858458f6, "ramfs", true},
                                       {0xef53, "ext2 to ext4"},
                                       {0x58465342, "xfs"},
                                       {0x9123683e, "btrfs"},
                                       {0x794c7630, "overlay"},
                                       {0x6969, "nfs"},
                                       {0xff534d42, "cifs"},
                                       {0xfe534d42, "smb2"},
                                       {0x65735546, "fuse"},
                                       {0x2fc12fc1, "zfs"},
                                       {0x0bd00bd0, "lustre"}};

void name_file_system(FolderReading& reading, uint32_t magic) {
    for (const FileSystem& one : kFileSystems)
        if (one.magic == magic) {
            reading.type = one.name;
            reading.in_memory = one.in_memory;
            return;
        }
}

}  // namespace

fs::path temporary_folder() {
    const char* const given = std::getenv("TMPDIR");
    return given && *given ? given : "/tmp";
}

FolderReading read_folder(const fs::path& path) {
    FolderReading reading{.path = path};
    std::error_code failed;
    fs::path there = path;
    reading.exists = fs::exists(path, failed);
    while (!fs::exists(there, failed) && there.has_relative_path()) there = there.parent_path();
    struct statfs system {};
    struct statvfs space {};
    if (::statfs(there.c_str(), &system) != 0 || ::statvfs(there.c_str(), &space) != 0) {
        reading.error = std::strerror(errno);
        return reading;
    }
    name_file_system(reading, static_cast<uint32_t>(system.f_type));
    reading.writable = ::access(there.c_str(), W_OK) == 0;
    reading.files_full = space.f_files > 0 && space.f_favail == 0;
    reading.free = static_cast<int64_t>(space.f_bavail) * static_cast<int64_t>(space.f_frsize);
    reading.total = static_cast<int64_t>(space.f_blocks) * static_cast<int64_t>(space.f_frsize);
    return reading;
}

void judge_folder(const FolderReading& folder, const FolderUse& use, const Say& say) {
    constexpr double kFull = 16e6;  // bytes
    const std::string where = concat(use.what, " in ", folder.path.string());
    if (!folder.error.empty())
        return say({use.check, Status::fail, concat(where, ": ", folder.error),
                    "look at its file system: mount, dmesg"});
    if (!folder.exists && use.must_write)
        return say({use.check, Status::fail, where + ": no such folder",
                    concat("mkdir -p ", folder.path.string(), ", or set ", use.variable)});
    const double free = static_cast<double>(folder.free);
    Finding finding{
        use.check,
        Status::ok,
        concat(where, ": ", size_text(free), " of ", size_text(static_cast<double>(folder.total)),
               " free", folder.type.empty() ? "" : concat(" (", folder.type, ")")),
        "",
        free * 1e-9,
        "GB"};
    if (!folder.writable) {
        finding.status = use.must_write ? Status::fail : Status::warn;
        finding.text += "; this user cannot write there";
        finding.remedy = "change the folder's owner or mode, or take another folder";
    } else if (free < kFull || folder.files_full) {
        finding.status = Status::fail;
        finding.text += folder.files_full ? "; no further file can be made" : "; it is full";
        finding.remedy = use.remedy;
    } else if (free < use.wanted) {
        finding.status = Status::warn;
        finding.remedy = use.remedy;
    } else if (folder.in_memory && use.must_keep) {
        finding.status = Status::warn;
        finding.text += "; it is memory, and empty after a restart";
        finding.remedy = "set XDG_DATA_HOME to a folder on a disk";
    }
    say(finding);
}

void check_current_folder(const Say& say) {
    std::error_code why;
    const fs::path here = fs::current_path(why);
    if (!why) return judge_folder(read_folder(here), kHereUse, say);
    const bool removed = why == std::errc::no_such_file_or_directory;
    say({kHereUse.check, Status::fail,
         removed ? "the current folder has been removed"
                 : concat("the current folder is not known: ", why.message()),
         "cd to another one"});
}

ReadReading read_file_speed(const fs::path& file, double seconds) {
    constexpr size_t kPiece = 4 << 20, kAlignment = 4096, kLeast = 16 << 20, kMost = 1 << 30;
    ReadReading reading{.file = file};
    if (file.empty()) return reading.why_not = "no installed model is large enough", reading;
    const int fd = ::open(file.c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC);
    if (fd < 0) {
        reading.why_not =
            errno == EINVAL ? "its file system reads through memory alone" : std::strerror(errno);
        return reading;
    }
    const std::unique_ptr<void, void (*)(void*)> piece(std::aligned_alloc(kAlignment, kPiece),
                                                       std::free);
    const auto begin = std::chrono::steady_clock::now();
    size_t bytes = 0;
    double taken = 0;
    while (taken < seconds && bytes < kMost) {
        const ssize_t got = ::read(fd, piece.get(), kPiece);
        if (got <= 0) break;
        bytes += static_cast<size_t>(got);
        taken = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    }
    ::close(fd);
    // A slow disk is known by what it did not read in that time.
    if (bytes < kLeast && taken < seconds)
        reading.why_not = "it is too short, or cannot be read";
    else
        reading.mb_per_s = static_cast<double>(bytes) / taken * 1e-6;
    return reading;
}

void judge_read(const ReadReading& reading, const Say& say) {
    const std::string file = reading.file.string();
    if (!reading.why_not.empty())
        return say(
            {"disk.read", Status::skip, concat(file, file.empty() ? "" : ": ", reading.why_not)});
    const bool slow = reading.mb_per_s < 200;  // 15 s for large-v3
    say({"disk.read", slow ? Status::warn : Status::ok,
         concat(figure(reading.mb_per_s), " MB/s of ", file, ": ", figure(3100 / reading.mb_per_s),
                " s for the 3.1 GB of large-v3"),
         slow ? "keep models on a local disk (XDG_DATA_HOME)" : "", reading.mb_per_s, "MB/s"});
}

}  // namespace hark::doctor
