// Groups of checks that hang, crash or fail, and the report.
#include "operations/doctor/checks.h"

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <thread>

#include "core/error.h"
#include "operations/doctor/apart.h"
#include "operations/doctor/report.h"
#include "operations/doctor_case.h"

namespace hark::doctor {
namespace {

const Finding kFine = {"a.fine", Status::ok, "fine", "", 14.25, "GB/s"};

void hang(const Say& say) {
    say(kFine);
    for (;;) ::pause();
}

TEST(RunApart, AllFindingsComeBack) {
    const Finding bad{"a.bad", Status::fail, "b\xff\n", "do something"};
    const Apart apart = run_apart([&](const Say& say) { say(kFine), say(bad); }, 10);
    EXPECT_EQ(apart.end, "");
    ASSERT_EQ(apart.findings.size(), 2u);
    EXPECT_EQ(apart.findings[0].check, "a.fine");
    EXPECT_EQ(apart.findings[0].value, 14.25);
    EXPECT_EQ(apart.findings[0].unit, "GB/s");
    EXPECT_EQ(apart.findings[1].status, Status::fail);
    EXPECT_EQ(apart.findings[1].text, "b\xef\xbf\xbd\n");
    EXPECT_EQ(apart.findings[1].remedy, "do something");
    EXPECT_EQ(apart.findings[1].value, std::nullopt);
}

TEST(RunApart, WhatHangsCrashesOrThrowsKeepsItsEarlierFindings) {
    const auto begin = std::chrono::steady_clock::now();
    Apart apart = run_apart(hang, 0.5);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
    EXPECT_EQ(apart.end, "did not end within 0.50 s");
    EXPECT_TRUE(apart.timed_out);
    EXPECT_EQ(apart.findings.size(), 1u);
    apart = run_apart([](const Say& say) { say(kFine), std::raise(SIGKILL); }, 10);
    EXPECT_EQ(apart.end, "was ended by a signal: Killed");
    EXPECT_FALSE(apart.timed_out);
    EXPECT_EQ(apart.findings.size(), 1u);
    apart = run_apart([](const Say&) { throw std::runtime_error("no luck"); }, 10);
    EXPECT_EQ(apart.end, "failed: no luck");
    apart = run_apart([](const Say&) { ::_exit(3); }, 10);
    EXPECT_EQ(apart.end, "ended without a result");
    // What a library prints is no part of the report.
    apart = run_apart([](const Say& say) { ::dprintf(1, "noise\n"), say(kFine); }, 10);
    EXPECT_EQ(apart.findings.size(), 1u);
}

const std::vector<CheckGroup> kTestGroups = {
    {"one",
     10,
     {"a.fine", "a.lost"},
     {},
     "see one",
     [](const DoctorOptions&, const Say& say) { say(kFine); }},
    {"two",
     0.5,
     {"b.first", "b.second"},
     {"b.second"},
     "see two",
     [](const DoctorOptions&, const Say& say) { hang(say); }},
    {"three",
     10,
     {"c.first", "c.second"},
     {},
     "see three",
     [](const DoctorOptions&, const Say& say) {
         say({"c", Status::skip, "no c here"});
     }}};

std::vector<Finding> run_test_groups(std::vector<std::string> checks, double seconds = 9) {
    DoctorOptions options;
    options.checks = std::move(checks);
    return run_checks(
        options, kTestGroups, [](const CheckGroup&, double) {}, seconds);
}

// No check is left out, and none is ok that was not made.
TEST(RunChecks, EachCheckHasAFinding) {
    const std::vector<Finding> found = run_test_groups({});
    std::string all;
    for (const Finding& finding : found)
        all += finding.check + " " + name_of(finding.status) + ": " + finding.text + " -> " +
               finding.remedy + "\n";
    EXPECT_EQ(all,
              "a.fine ok: fine -> \n"
              "a.lost fail: this check ended without a result -> see one\n"
              "a.fine ok: fine -> \n"
              "b.first warn: this check did not end within 0.50 s -> see two\n"
              "b.second fail: this check did not end within 0.50 s -> see two\n"
              "c skip: no c here -> \n");
}

// A busy machine is no failure: what can only warn does so too when it does not end.
TEST(RunChecks, OnlyWhatCanFailFailsWhenItDoesNotEnd) {
    std::string all, can_fail;
    for (const CheckGroup& group : check_groups()) {
        for (const char* check : group.checks) all += concat(" ", check, " ");
        for (const char* check : group.can_fail) can_fail += concat(" ", check, " ");
    }
    for (const char* check : {" memory.bandwidth ", " disk.read ", " gpu.transfer ", " gpu.copy ",
                              " gpu.product ", " gpu.clocks "}) {
        test::expect_contains(all, check);
        EXPECT_EQ(can_fail.find(check), can_fail.npos) << check;
    }
    for (const char* check : {" disk.here ", " models.whole ", " gpu.driver ", " gpu.kernel "})
        test::expect_contains(can_fail, check);
}

TEST(RunChecks, RunsThoseThatAreAskedFor) {
    std::vector<Finding> found = run_test_groups({"a.fine"});
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].check, "a.fine");
    found = run_test_groups({"a", "c.second"});
    ASSERT_EQ(found.size(), 3u);
    EXPECT_EQ(found[2].check, "c");
}

TEST(RunChecks, AGroupHasNoMoreThanTheTimeThatIsLeft) {
    std::vector<CheckGroup> slow(4, kTestGroups[1]);
    for (CheckGroup& group : slow) group.seconds = 60;
    const auto begin = std::chrono::steady_clock::now();
    run_checks(
        DoctorOptions(), slow, [](const CheckGroup&, double) {}, 0.5);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
}

TEST(DoctorOptions, UnknownChecksAreUsageErrors) {
    DoctorOptions options;
    options.checks = {"gpu", "cpu.cores", "locale", "memory.bandwidth"};
    options.check();
    EXPECT_TRUE(options.wants("gpu.ecc") && options.wants("gpu") && options.wants("cpu.cores"));
    EXPECT_FALSE(options.wants("cpu.busy") || options.wants("disk.here"));
    options.checks = {"gpu.eccc"};
    try {
        options.check();
        FAIL() << "expected a UsageError";
    } catch (const UsageError& wrong) {
        test::expect_contains(wrong.what(), "unknown check 'gpu.eccc'; did you mean 'gpu.ecc'?");
    }
}

TEST(Report, TextAndJson) {
    const std::vector<Finding> findings = {
        kFine,
        {"a.bad", Status::fail,
         "something is wrong with a long text that does not fit one line of 79", "a remedy"},
        {"a.bad", Status::fail, "the same again", "a remedy"},
        {"b.none", Status::skip, "not made"}};
    EXPECT_EQ(as_text(findings, false),
              "ok    a.fine              fine\n"
              "FAIL  a.bad               something is wrong with a long text that does not fit\n"
              "                          one line of 79\n"
              "                          -> a remedy\n"
              "FAIL  a.bad               the same again\n"
              "                          -> a remedy\n"
              "skip  b.none              not made\n"
              "1 ok, 0 warn, 2 FAIL, 1 skip\n");
    test::expect_contains(as_text(findings, true), "\x1b[1;31mFAIL\x1b[0m  a.bad ");
    EXPECT_EQ(failed_checks(findings), "a.bad");
    EXPECT_EQ(failed_checks({kFine}), "");
    const auto json = nlohmann::json::parse(as_json(findings));
    ASSERT_EQ(json.size(), 4u);
    EXPECT_EQ(json[0]["value"], 14.25);
    EXPECT_EQ(json[0]["unit"], "GB/s");
    EXPECT_EQ(json[1]["status"], "fail");
    EXPECT_EQ(json[1]["remedy"], "a remedy");
    EXPECT_TRUE(json[3]["value"].is_null());
}

TEST(Failure, AnErrorsLastPartIsTheRemedy) {
    const Finding with = failure("x", "a: broken; found b; run c", "d");
    EXPECT_EQ(with.text + "|" + with.remedy, "a: broken; found b|run c");
    const Finding without = failure("x", "a: broken", "d");
    EXPECT_EQ(without.text + "|" + without.remedy, "a: broken|d");
}

}  // namespace
}  // namespace hark::doctor
