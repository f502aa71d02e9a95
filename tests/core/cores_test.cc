// CPU quotas of cgroups, from trees of files as Linux has them.
#include "core/machine/cores.h"

#include <gtest/gtest.h>
#include <sched.h>

#include "support/process.h"

namespace hark {
namespace {

class Cores : public testing::Test {
  protected:
    void file(const std::string& name, const std::string& text) {
        const std::filesystem::path path = root() / name;
        std::filesystem::create_directories(path.parent_path());
        test::write_text(path, text);
    }
    void group(const std::string& line) { file("proc/self/cgroup", line); }
    // Version 2's only file, version 1's two.
    void quota(const std::string& folder, const std::string& text) {
        file("sys/fs/cgroup/" + folder + "/cpu.max", text);
    }
    void quota(const std::string& folder, const std::string& time, const std::string& period) {
        file("sys/fs/cgroup/" + folder + "/cpu.cfs_quota_us", time);
        file("sys/fs/cgroup/" + folder + "/cpu.cfs_period_us", period);
    }
    std::optional<int> cores() const { return cgroup_cores(root()); }
    const std::filesystem::path& root() const { return directory_.path(); }

  private:
    test::TemporaryDirectory directory_;
};

TEST_F(Cores, AQuotaIsRoundedUp) {
    group("0::/\n");
    for (const auto& [text, expected] :
         std::vector<std::pair<std::string, int>>{{"150000 100000\n", 2},
                                                  {"200000 100000\n", 2},
                                                  {"200001 100000\n", 3},
                                                  {"1000 100000\n", 1},
                                                  {"9223372036854775807 1\n", INT32_MAX}}) {
        quota("", text);
        EXPECT_EQ(cores(), expected) << text;
    }
}

TEST_F(Cores, WhatIsWrongOrMissingIsNoLimit) {
    EXPECT_EQ(cores(), std::nullopt);  // no file at all
    group("0::/\n");
    EXPECT_EQ(cores(), std::nullopt);
    for (const char* text :
         {"max 100000\n", "", "\n", "150000", "150000 ", " 100000", "-1 100000", "0 100000",
          "150000 0", "150000 -5", "1e5 100000", "150000 100000 x", "99999999999999999999 1"}) {
        quota("", text);
        EXPECT_EQ(cores(), std::nullopt) << text;
    }
    quota("", "150000 100000\n");
    for (const char* line : {"", "\n", "0", "0:", "::", "x:memory:/\n", "4:cpuset:/\n"}) {
        group(line);
        EXPECT_EQ(cores(), line == std::string("::") ? std::optional(2) : std::nullopt) << line;
    }
    std::filesystem::remove(root() / "sys/fs/cgroup/cpu.max");
    std::filesystem::create_directory(root() / "sys/fs/cgroup/cpu.max");
    group("0::/\n");
    EXPECT_EQ(cores(), std::nullopt);
}

TEST_F(Cores, TheSmallestQuotaUpToTheRootCounts) {
    group("0::/user.slice/job/step\n");
    quota("user.slice/job/step", "max 100000\n");
    EXPECT_EQ(cores(), std::nullopt);
    quota("user.slice", "400000 100000\n");
    EXPECT_EQ(cores(), 4);
    quota("user.slice/job", "250000 100000\n");
    EXPECT_EQ(cores(), 3);
    quota("user.slice/job/step", "800000 100000\n");
    EXPECT_EQ(cores(), 3);
    quota("user.slice/other", "100000 100000\n");
    EXPECT_EQ(cores(), 3);
}

// A container sees the host's name of its cgroup, and its own cgroup as the root.
TEST_F(Cores, AContainersOwnCgroupIsTheRoot) {
    group("0::/system.slice/docker-5f.scope\n");
    quota("", "200000 100000\n");
    EXPECT_EQ(cores(), 2);
    group("0::/../../outside\n");
    file("outside/cpu.max", "100000 100000\n");
    EXPECT_EQ(cores(), 2);
}

TEST_F(Cores, Version1) {
    group("12:cpuset:/docker/5f\n4:cpu,cpuacct:/docker/5f\n0::/docker/5f\n");
    quota("cpu,cpuacct/docker/5f", "-1\n", "100000\n");
    EXPECT_EQ(cores(), std::nullopt);
    quota("cpu,cpuacct/docker", "350000\n", "100000\n");
    EXPECT_EQ(cores(), 4);
    group("4:cpu:/docker/5f\n");
    EXPECT_EQ(cores(), std::nullopt);
    quota("cpu", "50000\n", "100000\n");
    EXPECT_EQ(cores(), 1);
    std::filesystem::remove(root() / "sys/fs/cgroup/cpu/cpu.cfs_period_us");
    EXPECT_EQ(cores(), std::nullopt);
}

TEST_F(Cores, BothVersionsCanBeMounted) {
    group("3:cpuacct,cpu:/a\n0::/a\n");
    quota("unified/a", "300000 100000\n");
    EXPECT_EQ(cores(), 3);
    quota("cpu/a", "200000\n", "100000\n");
    EXPECT_EQ(cores(), 2);
}

TEST_F(Cores, AffinityAndQuotaLimitThisProcess) {
    cpu_set_t all, one;
    ASSERT_EQ(sched_getaffinity(0, sizeof all, &all), 0);
    const int cores = CPU_COUNT(&all);
    EXPECT_EQ(available_cores(), std::min(cores, cgroup_cores().value_or(cores)));
    int first = 0;
    while (!CPU_ISSET(first, &all)) ++first;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    EXPECT_EQ(available_cores(), 1);
    ASSERT_EQ(sched_setaffinity(0, sizeof all, &all), 0);
}

}  // namespace
}  // namespace hark
