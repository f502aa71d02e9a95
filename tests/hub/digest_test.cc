#include "hub/digest.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "support/process.h"

namespace hark::models {
namespace {

class Digest : public ::testing::Test {
  protected:
    std::filesystem::path file(const std::string& text) {
        test::write_text(directory_.path() / "file", text);
        return directory_.path() / "file";
    }
    test::TemporaryDirectory directory_;
};

// FIPS 180-4's examples, and what sha256sum says of 40 MB of zeros.
TEST_F(Digest, Sha256IsThatOfTheStandard) {
    EXPECT_EQ(sha256_of(file("")),
              "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    EXPECT_EQ(sha256_of(file("abc")),
              "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    EXPECT_EQ(sha256_of(file(std::string(40'000'000, '\0'))),
              "c0e6623abfbed73c146be81338cff1e8e4c06dd05eb98721163dc79fbbd20562");
}

// `git hash-object FILE`.
TEST_F(Digest, GitsNameOfAFile) {
    EXPECT_EQ(git_blob_of(file("")), "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
    EXPECT_EQ(git_blob_of(file("hello\n")), "ce013625030ba8dba906f756967f9e9ca394464a");
}

TEST_F(Digest, AFileThatIsNotThereIsNamed) {
    EXPECT_THROW(sha256_of(directory_.path() / "none"), Error);
}

}  // namespace
}  // namespace hark::models
