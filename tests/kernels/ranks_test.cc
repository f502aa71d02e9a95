// Collectives between processes that spawn_local_ranks or mpirun have started. Started by mpirun,
// the program itself is a rank: without arguments it checks all collectives, and told to `die` or
// `fail` its last rank does so while the others wait.
#include "kernels/comm/communicator.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <thread>

#include "core/error.h"
#include "core/half.h"
#include "kernels/runtime/backend.h"
#include "kernels/runtime/cuda_library.h"
#include "support/expect.h"
#include "support/ops.h"
#include "support/process.h"
#include "support/ranks.h"

using namespace hark;
using namespace hark::test;

namespace {

std::vector<float> values_of(int rank, int64_t n) {
    return random_values(n, 100 + static_cast<uint64_t>(rank));
}

// The sum of values of this type in the order of the ranks, whose bits another order would not
// have, rounded once.
std::vector<float> sums(const Communicator& ranks, int64_t n, Dtype dtype = Dtype::f32) {
    std::vector<float> sum = TestDevice::rounded(values_of(0, n), dtype);
    for (int r = 1; r < ranks.size(); ++r) {
        const std::vector<float> more = TestDevice::rounded(values_of(r, n), dtype);
        for (size_t i = 0; i < sum.size(); ++i) sum[i] += more[i];
    }
    return TestDevice::rounded(sum, dtype);
}

void expect_same(const char* what, const std::vector<float>& found,
                 const std::vector<float>& expected) {
    require(found.size() == expected.size(), what, ": expected ", expected.size(),
            " values, found ", found.size());
    for (size_t i = 0; i < found.size(); ++i)
        require(found[i] == expected[i], what, ": value ", i, " of ", found.size(), ": expected ",
                expected[i], ", found ", found[i]);
}

// NCCL's sums of more than two ranks are not `exact`: its order is a ring's, and it rounds on the
// way.
void expect_sum(const char* what, const std::vector<float>& found,
                const std::vector<float>& expected, bool exact, Dtype dtype = Dtype::f32) {
    if (exact) return expect_same(what, found, expected);
    const float most = dtype == Dtype::f32 ? 1e-5f : 2e-2f;
    for (size_t i = 0; i < found.size(); ++i)
        require(std::abs(found[i] - expected[i]) <= most * (1 + std::abs(expected[i])), what,
                ": value ", i, " of ", found.size(), ": expected ", expected[i], ", found ",
                found[i]);
}

void check_tensors(TestDevice& device, Communicator& ranks, int64_t n) {
    Context& ctx = device.ctx();
    const Arena::Scope scope(ctx.arena);
    const bool nccl_is_exact = !ctx.on_cuda() || ranks.size() < 3;
    for (const Dtype dtype : {Dtype::f32, Dtype::f16, Dtype::bf16}) {
        Tensor x = device.up(values_of(ranks.rank(), n), dtype, {n});
        ranks.all_reduce(ctx, x);
        expect_sum("all_reduce", device.down(x), sums(ranks, n, dtype),
                   ranks.has_independent_sums(), dtype);
    }

    const int64_t all = n * ranks.size();
    const auto range = [&](const std::vector<float>& values, int rank) {
        return std::vector<float>(values.begin() + rank * n, values.begin() + (rank + 1) * n);
    };
    Tensor parts = device.up(values_of(ranks.rank(), all), Dtype::f32, {all});
    ranks.reduce_scatter(ctx, parts);
    expect_sum("reduce_scatter", device.down(ranks.own_part(parts)),
               range(sums(ranks, all), ranks.rank()), nccl_is_exact);

    for (const Dtype dtype : {Dtype::f32, Dtype::bf16}) {
        Tensor gathered = device.up(values_of(ranks.rank(), all), dtype, {all});
        ranks.all_gather(ctx, gathered);
        std::vector<float> expected;
        for (int r = 0; r < ranks.size(); ++r)
            for (const float value : range(values_of(r, all), r))
                expected.push_back(TestDevice::rounded({value}, dtype)[0]);
        expect_same("all_gather", device.down(gathered), expected);
    }
    for (int root = 0; root < ranks.size(); ++root) {
        Tensor from = device.up(values_of(ranks.rank(), n), Dtype::bf16, {n});
        ranks.broadcast(ctx, from, root);
        expect_same("broadcast", device.down(from),
                    TestDevice::rounded(values_of(root, n), Dtype::bf16));
    }
}

void check_host(Communicator& ranks) {
    const int size = ranks.size();
    std::vector<double> values = {0.1 * (ranks.rank() + 1), 1e300, -1.0 * ranks.rank()};
    double first = 0;
    for (int r = 0; r < size; ++r) first += 0.1 * (r + 1);
    ranks.sum(values);
    require(
        values[0] == first && values[1] == 1e300 * size && values[2] == -0.5 * size * (size - 1),
        "sum: found ", values[0], ", ", values[1], ", ", values[2]);
    require(ranks.sum(1.0) == size, "sum of ones");
    require(ranks.least(5.0 - ranks.rank()) == 6.0 - size, "the smallest value");
    for (int root = 0; root < size; ++root) {
        std::vector<int> word = {ranks.rank(), 7 * ranks.rank()};
        ranks.share(std::as_writable_bytes(std::span(word)), root);
        require(word[0] == root && word[1] == 7 * root, "share: found ", word[0]);
    }
}

// Every second rank, and neighbours in twos; both between two sums over all.
void check_groups(TestDevice& device, Communicator& ranks) {
    const auto group_of = [&](const auto& takes) {
        std::vector<int> members;
        for (int r = 0; r < ranks.size(); ++r)
            if (takes(r) == takes(ranks.rank())) members.push_back(r);
        const std::unique_ptr<Communicator> group = ranks.group(device.ctx(), members);
        require(group->size() == static_cast<int>(members.size()) &&
                    members[static_cast<size_t>(group->rank())] == ranks.rank(),
                "group: found ", group->rank(), " of ", group->size());
        check_tensors(device, *group, 1031);
        check_host(*group);
        check_tensors(device, ranks, 64);
        check_host(*group);
        group->finish();
    };
    group_of([](int r) { return r % 2; });
    group_of([](int r) { return r / 2; });
}

// All ranks call it; throws Error where a collective gives what it should not.
void check_collectives(TestDevice& device, Communicator& ranks) {
    // 140,001 for each rank is more than sockets hold and messages carry at once.
    for (const int64_t n : {0, 1, 2, 7, 64, 1031, 140'001}) check_tensors(device, ranks, n);
    check_host(ranks);
    if (!ranks.alone()) {  // refused at the door, by all ranks alike
        Tensor odd = device.empty(Dtype::f32, {ranks.size() + 1});
        bool refused = false;
        try {
            ranks.all_gather(device.ctx(), odd);
        } catch (const Error&) {
            refused = true;
        }
        require(refused, "all_gather took a tensor that does not divide");
    }
    check_groups(device, ranks);
    ranks.barrier();
}

constexpr DeviceCase kSerialCase = {"cpu", Device::cpu, Dtype::f32, 0, 1};

}  // namespace

TEST(Communicator, OneProcessIsLeftAsItIs) {
    TestDevice device(kSerialCase);
    Communicator alone;
    EXPECT_TRUE(alone.alone() && alone.first());
    check_collectives(device, alone);
    alone.finish();
}

class ForkedRanks : public testing::TestWithParam<int> {};

TEST_P(ForkedRanks, AgreeWithTheSumsInTheRanksOrder) {
    in_ranks(GetParam(), [](std::unique_ptr<Transport> links) {
        TestDevice device(kSerialCase);
        const std::unique_ptr<Communicator> ranks =
            make_communicator(device.ctx(), std::move(links));
        check_collectives(device, *ranks);
        ranks->finish();
    });
}
INSTANTIATE_TEST_SUITE_P(Sizes, ForkedRanks, testing::Values(1, 2, 3, 4));

TEST(ForkedRanks, AGroupHasThisRankAndNoneTwice) {
    in_ranks(2, [](std::unique_ptr<Transport> links) {
        Context ctx(1);
        const std::unique_ptr<Communicator> ranks = make_communicator(ctx, std::move(links));
        for (const std::vector<int>& members :
             {std::vector<int>{}, {1 - ranks->rank()}, {0, 1, 2}, {0, 0, 1, 1}}) {
            bool refused = false;
            try {
                ranks->group(ctx, members);
            } catch (const Error&) {
                refused = true;
            }
            require(refused, "a group of ", members.size(), " was taken");
        }
        ranks->finish();
    });
}

TEST(ForkedRanks, OneThatIsKilledEndsTheOthersAndIsNamed) {
    const TemporaryDirectory folder;
    const std::string error = ranks_error_of(3, [&](std::unique_ptr<Transport> links) {
        Context ctx(1);
        const std::unique_ptr<Communicator> ranks = cpu_ranks(std::move(links));
        ranks->barrier();
        if (ranks->rank() == 1) std::raise(SIGKILL);
        try {
            ranks->barrier();
        } catch (const Error& gone) {
            write_text(folder.path() / std::to_string(ranks->rank()), gone.what());
            throw;
        }
    });
    expect_contains(error, "rank 1 (process ");
    expect_contains(error, "signal 9 (Killed)");
    // Of the two others one may have seen the other end before rank 1.
    expect_contains(read_text(folder.path() / "0") + read_text(folder.path() / "2"),
                    "rank 1 has ended");
}

TEST(ForkedRanks, OneThatFailsEndsThoseThatDoNotListen) {
    const auto begin = std::chrono::steady_clock::now();
    const std::string error = ranks_error_of(2, [](std::unique_ptr<Transport> links) {
        if (links->rank() == 0) std::this_thread::sleep_for(std::chrono::seconds(100));
        fail("expected by the test: rank 1 fails");
    });
    expect_contains(error, "rank 1 has failed");
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(50));
}

// Sums by kernels or NCCL between the GPUs of this machine.
class NcclRanks : public testing::Test {
  protected:
    void SetUp() override {
        struct stat found;
        while (::stat(concat("/dev/nvidia", gpus_).c_str(), &found) == 0) ++gpus_;
        if (gpus_ < 2) GTEST_SKIP() << "needs two GPUs, found " << gpus_;
    }
    // The error of `ranks` processes that call `body`; none if they end well.
    static std::string error_on_gpus(int ranks,
                                     const std::function<void(TestDevice&, Communicator&)>& body) {
        return ranks_error_of(ranks, [&](std::unique_ptr<Transport> links) {
            TestDevice device({"cuda", Device::cuda}, links->local_rank());
            require(static_cast<bool>(device), device.why_not());
            const std::unique_ptr<Communicator> made =
                make_communicator(device.ctx(), std::move(links));
            body(device, *made);
            made->finish();
        });
    }
    int gpus_ = 0;
};

TEST_F(NcclRanks, AgreeWithTheSums) {
    const auto check = [](TestDevice& device, Communicator& made) {
        check_collectives(device, made);
        for (const int64_t n : {1'000'003, 5'000'003}) check_tensors(device, made, n);
    };
    for (int ranks = 2; ranks <= gpus_; ranks *= 2) EXPECT_EQ(error_on_gpus(ranks, check), "");
}

// A second context has sums of its own.
TEST_F(NcclRanks, SumOnTwoStreams) {
    const std::string error = error_on_gpus(2, [](TestDevice& device, Communicator& made) {
        TestDevice other({"cuda", Device::cuda}, made.rank());
        for (int i = 0; i < 3; ++i)
            for (TestDevice* on : {&device, &other}) check_tensors(*on, made, 4096);
    });
    EXPECT_EQ(error, "");
}

TEST_F(NcclRanks, OneThatIsKilledEndsTheOthersAndIsNamed) {
    const std::string error = error_on_gpus(2, [](TestDevice& device, Communicator& made) {
        check_tensors(device, made, 64);
        if (made.rank() == 1) std::raise(SIGKILL);
        check_tensors(device, made, 64);
    });
    expect_contains(error, "rank 1 (process ");
    expect_contains(error, "signal 9 (Killed)");
}

TEST_F(NcclRanks, OneThatFailsEndsTheOthers) {
    const auto begin = std::chrono::steady_clock::now();
    const std::string error = error_on_gpus(2, [](TestDevice& device, Communicator& made) {
        if (made.rank() == 0) std::this_thread::sleep_for(std::chrono::seconds(100));
        made.all_reduce(device.ctx(), device.up(values_of(1, 64), Dtype::f32, {64}));
        fail("expected by the test: rank 1 fails");
    });
    expect_contains(error, "rank 1 has failed");
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(50));
}

namespace {

int main_of_rank(const std::string& argument) try {
    TestDevice device(kSerialCase);
    const std::unique_ptr<Communicator> ranks = make_communicator(device.ctx(), mpi_transport());
    ranks->barrier();
    if (ranks->rank() == ranks->size() - 1 && argument == "die") std::raise(SIGKILL);
    if (ranks->rank() == ranks->size() - 1 && argument == "fail")
        fail("expected by the test: rank ", ranks->rank(), " fails");
    check_collectives(device, *ranks);
    ranks->finish();
    std::printf(".");
    return 0;
} catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}
const bool registered = (rank_main = main_of_rank, true);

// This program as ranks under mpirun.
ProcessResult under_mpirun(int ranks, const std::string& argument) {
    const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
    return run_shell(concat(mpirun(ranks, 100), "'", self, "' --rank=", argument));
}

}  // namespace

class MpiRanks : public testing::TestWithParam<int> {};

TEST_P(MpiRanks, AgreeWithTheSumsInTheRanksOrder) {
    if (mpirun(1, 1).empty()) GTEST_SKIP() << "built without MPI";
    const ProcessResult result = under_mpirun(GetParam(), "");
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(result.out, std::string(static_cast<size_t>(GetParam()), '.'));
}
INSTANTIATE_TEST_SUITE_P(Sizes, MpiRanks, testing::Values(2, 3));

TEST(MpiRanks, OneThatIsKilledEndsTheOthersAndIsNamed) {
    if (mpirun(1, 1).empty()) GTEST_SKIP() << "built without MPI";
    const ProcessResult result = under_mpirun(2, "die");
    EXPECT_NE(result.exit_code, 0);
    EXPECT_NE(result.exit_code, 124) << "mpirun has not ended";
    expect_contains(result.err, "process rank 1");
    expect_contains(result.err, "signal 9");
}

TEST(MpiRanks, OneThatFailsEndsTheOthers) {
    if (mpirun(1, 1).empty()) GTEST_SKIP() << "built without MPI";
    const ProcessResult result = under_mpirun(3, "fail");
    EXPECT_EQ(result.exit_code, 1) << result.err;
    expect_contains(result.err, "expected by the test: rank 2 fails");
}
