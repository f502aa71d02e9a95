// Libraries that are opened on first use: each reason for which one cannot be used has its own
// kind.
#include "kernels/runtime/plugin.h"

#include <gtest/gtest.h>

#include "support/process.h"

namespace hark {
namespace {

constexpr const char* kFile = "libhark-plugin-test.so";

PluginProblem problem_of(const PluginKind& kind) {
    try {
        const Plugin plugin(kind);
    } catch (const PluginError& why) {
        return why.problem();
    }
    ADD_FAILURE() << kind.file << " was loaded";
    return {};
}

PluginKind kind_of(const char* file, const char* abi_name = "no_such_symbol") {
    return {.file = file,
            .abi_name = abi_name,
            .abi = -1,
            .without = "nothing works",
            .built = "it is nowhere",
            .needs = "something must be installed"};
}

TEST(Plugin, OneThatIsNotThereIsMissing) {
    EXPECT_EQ(problem_of(kind_of(kFile)), PluginProblem::missing);
}

TEST(Plugin, OneThatTheLoaderRefusesIsUnloadable) {
    const std::filesystem::path path = test::build_dir() / "lib" / kFile;
    std::filesystem::create_directories(path.parent_path());
    test::write_text(path, "no library");
    EXPECT_EQ(problem_of(kind_of(kFile)), PluginProblem::unloadable);
    std::filesystem::remove(path);
}

// fake_cuda.cc has the version that the tools need.
TEST(Plugin, OneOfAnotherVersionOrWithoutItIsOfAnotherBuild) {
    const std::filesystem::path path = test::build_dir() / "lib" / kFile;
    std::filesystem::create_directories(path.parent_path());
    std::filesystem::copy_file(test::build_dir() / "tests/fake_cuda/lib/libhark-cuda.so", path,
                               std::filesystem::copy_options::overwrite_existing);
    EXPECT_EQ(problem_of(kind_of(kFile)), PluginProblem::other_build);
    EXPECT_EQ(problem_of(kind_of(kFile, "hark_cuda_abi")), PluginProblem::other_build);
    std::filesystem::remove(path);
}

}  // namespace
}  // namespace hark
