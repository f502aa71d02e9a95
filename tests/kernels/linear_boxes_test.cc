// Products of 65 to 128 rows of 16 bits, which Hopper has a kernel of its own for: a row has the
// bits that it has alone, with every number of blocks per tile.
#include <gtest/gtest.h>

#include "kernels/linear_case.h"

namespace hark::test {
namespace {

class BoxRows : public testing::TestWithParam<DeviceCase> {};

// Slices of K that are shared by 5, 2 and 4 blocks and by none, tiles of rows and outputs that are
// full and cut off. The last ones are too short for that kernel, or too few for it alone.
constexpr LinearShape kShapes[] = {
    {200, 1280, 1280}, {200, 3840, 1280}, {200, 5120, 1280}, {200, 1288, 5120}, {300, 1288, 1088},
    {300, 4104, 1088}, {300, 2600, 2048}, {200, 384, 384},   {200, 384, 1536},  {200, 200, 320}};

TEST_P(BoxRows, HaveTheBitsOfRowsAlone) {
    TestDevice device(GetParam());
    if (!device) GTEST_SKIP() << device.why_not();
    const Dtype type = GetParam().activations;
    for (const LinearShape& shape : kShapes) {
        check_neighbours(device, type, type, shape, {1, 65, 128, 129}, type, Activation::gelu);
        check_neighbours(device, type, type, shape, {1, 66, 128}, type, Activation::none, true);
    }
}

// Outputs of a vocabulary in f32, tiles of them that are full and cut off, one slice of K and
// several.
TEST_P(BoxRows, LogitsHaveTheBitsOfRowsAlone) {
    TestDevice device(GetParam());
    if (!device) GTEST_SKIP() << device.why_not();
    const Dtype type = GetParam().activations;
    for (const LinearShape& shape :
         {LinearShape{130, 16385, 384}, {130, 16448, 128}, {130, 17001, 1280}})
        check_neighbours(device, type, type, shape, {1, 65, 128}, Dtype::f32, Activation::none,
                         false, false);
}

INSTANTIATE_TEST_SUITE_P(Devices, BoxRows, testing::Values(kCudaF16Case, kCudaBf16Case),
                         name_of_case);

}  // namespace
}  // namespace hark::test
