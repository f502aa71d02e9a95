// The main of every folder's tests.
//   --file=NAME_test.cc    runs the cases of that file alone: ctest starts one process per file
//   --rank=ARGUMENT        the process is a rank that a test has started under mpirun
// Exit status 77 if all cases were skipped.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "support/landlock.h"
#include "support/process.h"

namespace {

// The cases that are defined in `file`, as a gtest filter.
std::string cases_of(const std::string& file) {
    std::string filter;
    const testing::UnitTest& all = *testing::UnitTest::GetInstance();
    for (int i = 0; i < all.total_test_suite_count(); ++i) {
        const testing::TestSuite& suite = *all.GetTestSuite(i);
        for (int j = 0; j < suite.total_test_count(); ++j) {
            const testing::TestInfo& test = *suite.GetTestInfo(j);
            if (std::filesystem::path(test.file()).filename() == file)
                filter += std::string(filter.empty() ? "" : ":") + suite.name() + "." + test.name();
        }
    }
    return filter;
}

}  // namespace

int main(int argc, char** argv) {
    const std::string last = argc > 1 ? argv[argc - 1] : "";
    if (last.rfind("--rank=", 0) == 0) return hark::test::rank_main(last.substr(7));
    // A kernel without it would add a warning to what the tools say.
    if (!hark::test::has_landlock()) ::setenv("HARK_SANDBOX", "off", 0);
    testing::InitGoogleTest(&argc, argv);
    if (argc > 1 && std::string(argv[1]).rfind("--file=", 0) == 0) {
        const std::string file = std::string(argv[1]).substr(7), filter = cases_of(file);
        if (filter.empty()) {
            std::fprintf(stderr, "%s: no test is defined in %s\n", argv[0], file.c_str());
            return 1;
        }
        testing::GTEST_FLAG(filter) = filter;
    }
    const int status = RUN_ALL_TESTS();
    const testing::UnitTest& all = *testing::UnitTest::GetInstance();
    return status == 0 && all.skipped_test_count() == all.test_to_run_count() ? 77 : status;
}
