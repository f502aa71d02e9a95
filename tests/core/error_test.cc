// The texts of messages: what concat() writes is what a stream would write.
#include "core/error.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <new>
#include <sstream>

#include "core/tensor.h"

using namespace hark;

namespace {

template <class... Parts>
std::string streamed(const Parts&... parts) {
    std::ostringstream text;
    (text << ... << parts);
    return text.str();
}

}  // namespace

TEST(Error, JoinsPartsAsAStreamDoes) {
    const std::string text = "a\0b";
    const char* const name = "name";
    const bool holds = true;
    EXPECT_EQ(concat(text, name, std::string_view("xyz", 2), 'c', holds),
              streamed(text, name, std::string_view("xyz", 2), 'c', holds));
    EXPECT_EQ(concat(int64_t{-5}, ' ', size_t{7}, ' ', std::numeric_limits<uint64_t>::max()),
              "-5 7 18446744073709551615");
    for (const double number :
         {0.0, -0.0, 1.0, 0.1, 1.0 / 3, 123456.0, 1234567.0, 1e-5, 2.5e300,
          std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
        EXPECT_EQ(concat(number), streamed(number));
        EXPECT_EQ(concat(static_cast<float>(number)), streamed(static_cast<float>(number)));
    }
    EXPECT_EQ(concat(), "");
}

TEST(Error, DescribesTensors) {
    const Tensor tensor(nullptr, Dtype::f32, {2, 1500, 384});
    EXPECT_EQ(concat("got ", tensor), "got f32 (2, 1500, 384)");
}

TEST(Error, ThrowsWhatDoesNotHold) {
    EXPECT_NO_THROW(require(true, "not shown"));
    try {
        require(false, "x: got ", 3, ", expected ", 4);
        FAIL();
    } catch (const UsageError&) {
        FAIL();
    } catch (const Error& error) {
        EXPECT_STREQ(error.what(), "x: got 3, expected 4");
    }
    EXPECT_THROW(require_usage(false, "wrong"), UsageError);
}

TEST(Error, KnowsWhatMemoryDidNotSufficeFor) {
    EXPECT_TRUE(is_out_of_memory(OutOfMemory("needed 7")));
    EXPECT_EQ(failure_text(OutOfMemory("needed 7")), "needed 7");
    EXPECT_TRUE(is_out_of_memory(std::bad_array_new_length()));
    EXPECT_EQ(failure_text(std::bad_alloc()), "out of memory");
    EXPECT_FALSE(is_out_of_memory(Error("wrong")));
    EXPECT_EQ(failure_text(std::logic_error("wrong")), "wrong");
}
