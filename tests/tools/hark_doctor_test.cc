// hark-doctor as a shell runs it: with and without a GPU, in a cgroup, with broken models, on a
// full disk, with a driver that is old, broken or hangs.
#include <chrono>

#include "core/json/json.h"
#include "tools/hark_model.h"

namespace hark::test {
namespace {

#define HARK_OP(name) +1
constexpr int kOperations = 0
#include "kernels/ops.def"
    ;
#undef HARK_OP

class Doctor : public HarkModel {
  protected:
    // With the management library that says what `state` names.
    ProcessResult with_nvml(const std::string& state, const std::string& arguments) {
        return shell("FAKE_NVML=" + state + " LD_LIBRARY_PATH='" +
                     (build_dir() / "tests/fake_nvml").string() + "' hark-doctor " + arguments);
    }
    // A report in one line, with single spaces.
    static std::string unwrapped(const std::string& report) {
        std::string text;
        for (const char c : report) {
            const char shown = c == '\n' ? ' ' : c;
            if (shown != ' ' || (!text.empty() && text.back() != ' ')) text += shown;
        }
        return text;
    }
    static void expect_line(const ProcessResult& result, int exit_code, const std::string& line) {
        EXPECT_EQ(result.exit_code, exit_code) << result.err;
        expect_contains(unwrapped(result.out), line);
    }
};

bool has_gpu() { return fs::exists("/dev/nvidiactl"); }

TEST_F(Doctor, ChecksThisMachineInLessThanTenSeconds) {
    const auto begin = std::chrono::steady_clock::now();
    const ProcessResult result = shell("hark-doctor --format json");
    const auto taken = std::chrono::steady_clock::now() - begin;
    EXPECT_LT(taken, std::chrono::seconds(10));
    const auto report = nlohmann::json::parse(result.out);
    bool failed = false;
    std::string names;
    for (const auto& finding : report) {
        for (const char* key : {"check", "status", "text", "remedy", "unit"})
            EXPECT_TRUE(finding[key].is_string()) << finding.dump();
        EXPECT_TRUE(finding["value"].is_number() || finding["value"].is_null()) << finding.dump();
        failed = failed || finding["status"] == "fail";
        // What is wrong has a remedy, and nothing else.
        const bool wrong = finding["status"] == "fail" || finding["status"] == "warn";
        EXPECT_EQ(finding["remedy"] != "", wrong) << finding.dump();
        names += " " + finding["check"].get<std::string>() + " ";
    }
    EXPECT_EQ(result.exit_code, failed ? 1 : 0) << result.err;
    // Each check that the help names has its finding.
    const std::string help = run_shell("hark-doctor --help-all").out;
    for (const char* check :
         {"cpu.features",       "cpu.cores",          "cpu.governor",     "cpu.busy",
          "memory.available",   "memory.limit",       "memory.pressure",  "memory.bandwidth",
          "limits.files",       "limits.processes",   "limits.memory",    "limits.file-size",
          "disk.here",          "disk.temporary",     "disk.models",      "disk.read",
          "libraries.versions", "libraries.decoders", "models.installed", "models.whole",
          "models.default",     "models.incomplete",  "locale",           "sandbox"}) {
        expect_contains(names, std::string(" ") + check + " ");
        expect_contains(help, check);
    }
    expect_contains(names, " gpu");
}

TEST_F(Doctor, KernelsAreComparedIfThatIsAskedFor) {
    const auto begin = std::chrono::steady_clock::now();
    const ProcessResult result = shell("hark-doctor --kernels --device cpu");
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
    expect_contains(unwrapped(result.out),
                    concat("ok kernels.cpu ", kOperations, " operations agree with their"));
    expect_contains(unwrapped(result.out), "skip kernels.gpu --device cpu");
    expect_line(shell("hark-doctor kernels.cpu"), 0,
                concat("ok kernels.cpu ", kOperations, " operations agree"));
    EXPECT_EQ(shell("hark-doctor --device cpu").out.find("kernels."), std::string::npos);
    EXPECT_EQ(shell("hark-doctor --kernels kernels.gpu --device cpu").out.find("kernels.cpu"),
              std::string::npos);
}

TEST_F(Doctor, IsACommandOfHark) {
    const ProcessResult result = shell("LC_ALL=C.UTF-8 hark doctor cpu.features locale");
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(result.out.find("cpu.features"), 6u) << result.out;
    expect_contains(result.out, "\n2 ok, 0 warn, 0 FAIL, 0 skip\n");
    expect_contains(run_shell("hark help doctor").out, "Usage: hark-doctor [OPTION]... [CHECK...]");
}

TEST_F(Doctor, WrongCommandLinesAreExitStatus2) {
    expect_fails_without_output(shell("hark-doctor gpu.ec"), 2,
                                "unknown check 'gpu.ec'; did you mean 'gpu.ecc'?");
    expect_fails_without_output(shell("hark-doctor --device gpu"), 2, "did you mean 'cuda'?");
    expect_fails_without_output(shell("hark-doctor --format xml"), 2, "--format");
}

TEST_F(Doctor, AMachineWithoutAGpu) {
    if (has_gpu()) GTEST_SKIP() << "this machine has a GPU";
    expect_line(shell("hark-doctor gpu"), 0, "skip gpu no NVIDIA GPU and no driver");
    expect_line(shell("hark-doctor gpu --device cpu"), 0, "skip gpu --device cpu");
    const ProcessResult wanted = shell("hark-doctor gpu --device cuda");
    expect_line(wanted, 1,
                "FAIL gpu.driver there is no NVIDIA GPU, or no driver -> install NVIDIA");
    EXPECT_EQ(wanted.err, "hark-doctor: failed: gpu.driver\n");
    expect_line(shell("HARK_DEVICE=cuda:1 hark-doctor gpu"), 1, "FAIL gpu.driver");
}

TEST_F(Doctor, TheDriversLibraryIsBelieved) {
    if (has_gpu()) GTEST_SKIP() << "this machine has a GPU";
    expect_line(with_nvml("sound", "gpu.driver gpu.ecc gpu.power gpu.memory gpu.mode"), 0,
                "ok gpu.driver NVIDIA 580.105.08, for CUDA up to 13.0; NVIDIA H100 80GB HBM3");
    const ProcessResult old = with_nvml("old", "gpu.driver");
    expect_line(old, 1,
                "FAIL gpu.driver NVIDIA 470.57.02, for CUDA up to 11.4; NVIDIA H100 80GB HBM3; "
                "hark needs a driver for CUDA 12.0 -> install NVIDIA's driver 525.60 or newer");
    expect_line(with_nvml("mismatch", "gpu.driver"), 1,
                "version mismatch -> the driver was updated while it ran: restart the machine");
    expect_line(with_nvml("no-gpu", "gpu.driver"), 1, "it finds no GPU -> docker run --gpus all");
    expect_line(with_nvml("ecc", "gpu.ecc"), 1, "FAIL gpu.ecc on; 12 uncorrected errors -> nvidia");
    expect_line(with_nvml("hot", "gpu.clocks"), 0,
                "warn gpu.clocks 600 MHz of 1980, 91 degrees, 400 W, without load; slowed down "
                "by heat");
    expect_line(with_nvml("capped", "gpu.power"), 0,
                "warn gpu.power limit 350 W, below this GPU's default of 700 W");
    // Nothing can run there, and none of these is called ok.
    const ProcessResult all = with_nvml("sound", "gpu");
    expect_line(all, 1, "FAIL gpu.start the driver's library libcuda.so.1 cannot be loaded");
    for (const char* check : {"gpu.kernel", "gpu.transfer", "gpu.copy", "gpu.product"})
        expect_line(all, 1, std::string("skip ") + check);
}

TEST_F(Doctor, ADriverThatHangsDoesNotHangIt) {
    if (has_gpu()) GTEST_SKIP() << "this machine has a GPU";
    const auto begin = std::chrono::steady_clock::now();
    const ProcessResult result = with_nvml("hang", "gpu.driver cpu.features");
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
    expect_line(result, 1, "FAIL gpu.driver this check did not end within 7.00 s -> look for NVRM");
    expect_line(result, 1, "ok cpu.features");
}

TEST_F(Doctor, ABrokenModelIsNamed) {
    fs::create_directories(models());
    fs::copy(kDemo, models() / "whisper-tiny", fs::copy_options::recursive);
    expect_line(shell("hark-doctor models"), 0, "ok models.whole 3 models open, sizes match");
    for (const char* name : {"tokenizer.json", "vocab.json"})
        fs::remove(models() / "whisper-tiny" / name);
    expect_line(shell("hark-doctor models.whole"), 1, "whisper-tiny: expected tokenizer.json, or");
    const ProcessResult verified = shell("hark-model verify whisper-tiny");
    EXPECT_EQ(verified.exit_code, 1);
    expect_contains(verified.err, "whisper-tiny: expected tokenizer.json, or vocab.json");
    for (const char* name : {"tokenizer.json", "vocab.json"})
        fs::copy(kDemo / name, models() / "whisper-tiny" / name);
    fs::resize_file(models() / "whisper-tiny/model.safetensors", 1'000'000);
    ProcessResult broken = shell("hark-doctor models disk.read");
    expect_line(broken, 1, "FAIL models.whole whisper-tiny: ");
    expect_line(broken, 1, "-> hark model rm whisper-tiny && hark model get whisper-tiny");
    EXPECT_EQ(broken.err, "hark-doctor: failed: models.whole\n");
    // A file that opens, but is not of the size that was downloaded.
    fs::copy(kDemo / "model.safetensors", models() / "whisper-tiny/model.safetensors",
             fs::copy_options::overwrite_existing);
    write_text(models() / "whisper-tiny/hark-model.json",
               R"({"files": [{"name": "tokenizer.json", "bytes": 12}]})");
    expect_line(shell("hark-doctor models.whole"), 1, "bytes, the download had 12");
    fs::remove(models() / "whisper-tiny/hark-model.json");
    fs::create_directory_symlink("gone", models() / "whisper-default");
    fs::create_directories(models() / "OWNER/.NAME.part");
    broken = shell("hark-doctor models");
    expect_line(broken, 1,
                "whisper-default leads to a model that does not exist -> hark model use");
    expect_line(broken, 1, "warn models.incomplete OWNER/NAME: its download has not ended");
}

TEST_F(Doctor, AFullDiskIsNamed) {
    if (run_shell("unshare -rm true").exit_code != 0) GTEST_SKIP() << "no user namespaces here";
    const std::string folder = "'" + home_.path().string() + "/full'";
    const ProcessResult result =
        shell("unshare -rm sh -c \"mkdir " + folder + " && mount -t tmpfs -o size=4M none " +
              folder + " && cd " + folder +
              " && head -c 8M /dev/zero > zeros 2> /dev/null; "
              "TMPDIR=$PWD hark-doctor disk.here\"");
    expect_line(result, 1, "0.00 MB of 4.19 MB free (tmpfs); it is full -> remove files there");
    expect_line(shell("TMPDIR=/nowhere hark-doctor disk.temporary"), 1,
                "FAIL disk.temporary temporary files in /nowhere: no such folder -> "
                "mkdir -p /nowhere, or set TMPDIR");
}

TEST_F(Doctor, ARemovedCurrentFolderIsNamed) {
    const std::string folder = "'" + home_.path().string() + "/gone'";
    expect_line(shell("mkdir " + folder + " && cd " + folder + " && rmdir " + folder +
                      " && hark-doctor disk"),
                1, "FAIL disk.here the current folder has been removed -> cd to another one");
}

TEST_F(Doctor, ACgroupOfOneCore) {
    const ProcessResult result = shell(R"sh(
        [ "$(nproc)" -gt 1 ] || exit 77
        for parent in /sys/fs/cgroup/cpu /sys/fs/cgroup; do
            group=$parent/hark-doctor-test-$$
            mkdir "$group" 2> /dev/null || continue
            if { echo 50000 > "$group/cpu.cfs_quota_us" ||
                echo '50000 100000' > "$group/cpu.max"; } 2> /dev/null; then
                sh -c "echo \$\$ > '$group/cgroup.procs' && exec hark-doctor cpu.cores"
                status=$?
                rmdir "$group"
                exit $status
            fi
            rmdir "$group"
        done
        exit 77)sh");
    if (result.exit_code == 77) GTEST_SKIP() << "one core, or no cgroup can be made here";
    expect_line(result, 0, "warn cpu.cores 1 of ");
    expect_line(result, 0, " cores: the cgroup's CPU quota");
    expect_line(result, 0, "-> docker run --cpus ");
}

TEST_F(Doctor, LimitsAndLocaleOfTheShell) {
    expect_line(shell("ulimit -n 256; hark-doctor limits"), 0,
                "warn limits.files 256: few open files");
    expect_line(shell("LC_ALL=POSIX hark-doctor locale"), 0,
                "warn locale POSIX: ANSI_X3.4-1968, not UTF-8");
    expect_line(shell("LC_ALL=xx_XX.UTF-8 hark-doctor locale"), 0,
                "warn locale xx_XX.UTF-8: the system does not know this locale -> export LC_ALL");
    expect_line(shell("taskset -c 0 hark-doctor cpu.cores"), 0, "cpu.cores 1 ");
}

}  // namespace
}  // namespace hark::test
