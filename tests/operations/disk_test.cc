// Folders, files, libraries and models: readings made up, and some of this machine's.
#include "operations/doctor/disk.h"

#include "operations/doctor/libraries.h"
#include "operations/doctor/models.h"
#include "operations/doctor_case.h"

namespace hark::doctor {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kGiga = 1'000'000'000;

Finding folder(const FolderReading& reading, const FolderUse& use) {
    return Findings([&](const Say& say) { judge_folder(reading, use, say); }).of(use.check);
}

TEST(JudgeFolder, FreeSpaceDecides) {
    FolderReading reading{.path = "/data", .type = "xfs", .free = 80 * kGiga, .total = 100 * kGiga};
    expect_finding(folder(reading, kModelsUse), Status::ok,
                   "models in /data: 80.0 GB of 100 GB free (xfs)");
    reading.free = 3 * kGiga;
    expect_finding(folder(reading, kModelsUse), Status::warn, "3.00 GB", "large-v3 takes 3.1 GB");
    expect_finding(folder(reading, kHereUse), Status::ok, "3.00 GB");
    reading.free = 1'000'000;
    expect_finding(folder(reading, kHereUse), Status::fail,
                   "1.00 MB of 100 GB free (xfs); it is full", "remove files there");
    EXPECT_EQ(folder(reading, kHereUse).value, 0.001);
    reading.free = 80 * kGiga;
    reading.files_full = true;
    expect_finding(folder(reading, kHereUse), Status::fail, "no further file can be made",
                   "remove files there");
}

TEST(JudgeFolder, MemoryAndModesAreNamed) {
    FolderReading reading{.path = "/run",
                          .type = "tmpfs",
                          .in_memory = true,
                          .free = 80 * kGiga,
                          .total = 100 * kGiga};
    expect_finding(folder(reading, kModelsUse), Status::warn, "empty after a restart",
                   "XDG_DATA_HOME");
    expect_finding(folder(reading, kTemporaryUse), Status::ok, "(tmpfs)");
    reading.writable = false;
    expect_finding(folder(reading, kTemporaryUse), Status::fail, "cannot write there", "mode");
    expect_finding(folder(reading, kHereUse), Status::warn, "cannot write there", "mode");
    expect_finding(folder({.path = "/gone", .error = "Stale file handle"}, kHereUse), Status::fail,
                   "output in /gone: Stale file handle", "file system");
    reading.exists = false;
    expect_finding(folder(reading, kTemporaryUse), Status::fail, "no such folder",
                   "mkdir -p /run, or set TMPDIR");
    reading = {.path = "/odd", .free = 80 * kGiga, .total = 100 * kGiga};
    EXPECT_EQ(folder(reading, kHereUse).text, "output in /odd: 80.0 GB of 100 GB free");
}

TEST(ReadFolder, AFolderThatIsNotThereIsReadByTheNearest) {
    const test::TemporaryDirectory directory;
    const FolderReading there = read_folder(directory.path());
    EXPECT_EQ(there.error, "");
    EXPECT_GT(there.total, 0);
    EXPECT_TRUE(there.exists && there.writable);
    const FolderReading below = read_folder(directory.path() / "a/b");
    EXPECT_EQ(below.path, directory.path() / "a/b");
    EXPECT_FALSE(below.exists);
    EXPECT_EQ(below.total, there.total);
    EXPECT_EQ(below.type, there.type);
}

TEST(JudgeRead, SaysWhatALargeModelTakes) {
    const auto judge = [](const ReadReading& reading) {
        return Findings([&](const Say& say) { judge_read(reading, say); }).of("disk.read");
    };
    expect_finding(judge({.file = "/m/a.gguf", .mb_per_s = 1550}), Status::ok,
                   "1550 MB/s of /m/a.gguf: 2.00 s for the 3.1 GB");
    expect_finding(judge({.file = "/m/a.gguf", .mb_per_s = 50}), Status::warn, "62.0 s",
                   "local disk");
    expect_finding(judge({.file = "/m/a", .why_not = "it is too short"}), Status::skip,
                   "/m/a: it is too short");
    expect_finding(judge(read_file_speed("", 0.1)), Status::skip, "no installed model");
    expect_finding(judge(read_file_speed("/nowhere/at-all", 0.1)), Status::skip, "No such file");
    const test::TemporaryDirectory directory;
    test::write_text(directory.path() / "short", "too short");
    EXPECT_NE(read_file_speed(directory.path() / "short", 0.1).why_not, "");
}

TEST(JudgeLibraries, OlderOnesAndMissingDecodersAreNamed) {
    const auto judge = [](const LibrariesReading& reading) {
        return Findings([&](const Say& say) { judge_libraries(reading, say); });
    };
    const Findings sound = judge({.libraries = {{"libavcodec", "59.37.100", "59.9.101"},
                                                {"oneDNN", "2.6.3", "2.6.3"},
                                                {"libsndfile", "1.2.0", ""}}});
    expect_finding(sound.of("libraries.versions"), Status::ok,
                   "libavcodec 59.37.100, oneDNN 2.6.3, libsndfile 1.2.0");
    expect_finding(sound.of("libraries.decoders"), Status::ok, "libavcodec has the usual decoders");
    const Findings old =
        judge({.libraries = {{"libavcodec", "59.9.100", "59.37.100"}}, .missing = {"opus", "aac"}});
    expect_finding(old.of("libraries.versions"), Status::warn, "libavcodec is older than 59.37.100",
                   "update it");
    expect_finding(old.of("libraries.decoders"), Status::warn, "does not decode opus, aac",
                   "the full FFmpeg");
    const Findings without = judge({.libraries = {{"oneDNN", "2.6.3", "2.6.3"}},
                                    .no_libav = "libhark-av.so cannot be loaded"});
    expect_finding(without.of("libraries.decoders"), Status::fail, "libhark-av.so cannot be loaded",
                   "FFmpeg's libraries");
    const LibrariesReading here = read_libraries();
    EXPECT_EQ(here.no_libav, "");
    EXPECT_GE(here.libraries.size(), 6u);
    for (const LibraryVersion& library : here.libraries)
        EXPECT_TRUE(library.loaded[0] >= '0' && library.loaded[0] <= '9')
            << library.name << " " << library.loaded;
}

TEST(JudgeModels, BrokenOnesAreNamed) {
    const auto judge = [](const ModelsReading& reading) {
        return Findings([&](const Say& say) { judge_models(reading, say); });
    };
    const Findings none = judge({});
    expect_finding(none.of("models.installed"), Status::warn, "none", "hark model get small");
    expect_finding(none.of("models.whole"), Status::skip, "no model is installed");
    expect_finding(none.of("models.default"), Status::ok, "no default is set");
    expect_finding(judge({.defaults = 1}).of("models.default"), Status::ok, "each default");
    expect_finding(none.of("models.incomplete"), Status::ok, "no interrupted downloads");
    const Findings demo = judge({.models = {{"whisper-demo", "/m/whisper-demo", ""}}});
    expect_finding(demo.of("models.installed"), Status::warn, "1 model (1 demonstration)",
                   "hark model get small");
    expect_finding(demo.of("models.whole"), Status::ok, "1 model opens, sizes match");
    const Findings broken =
        judge({.models = {{"whisper-small", "/m/s", "s: too short"}, {"whisper-tiny", "/m/t", ""}},
               .defaults = 1,
               .dangling = {"/m/whisper-default"},
               .incomplete = {"OWNER/NAME"}});
    expect_finding(broken.of("models.installed"), Status::ok, "2 models");
    expect_finding(broken.of("models.whole"), Status::fail, "whisper-small: s: too short",
                   "hark model rm whisper-small && hark model get whisper-small");
    expect_finding(judge({.models = {{"own", "/m/own", "bad"}}}).of("models.whole"), Status::fail,
                   "own: bad", "hark model rm own, then copy or convert it once more");
    expect_finding(broken.of("models.default"), Status::fail, "/m/whisper-default leads to",
                   "hark model use");
    expect_finding(broken.of("models.incomplete"), Status::warn, "OWNER/NAME",
                   "hark model get OWNER/NAME");
}

}  // namespace
}  // namespace hark::doctor
