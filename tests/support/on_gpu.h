// A test that needs a GPU, and is skipped if there is none.
#pragma once

#include <gtest/gtest.h>

#include "core/error.h"
#include "kernels/runtime/backend.h"

namespace hark::test {

class OnGpu : public testing::Test {
  protected:
    void SetUp() override {
        try {
            make_cuda_context(0);
        } catch (const Error& error) {
            GTEST_SKIP() << error.what();
        }
    }
};

}  // namespace hark::test
