// What a decoder's process inherits from the server.
#include "serve/audio/decoder_process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "core/files/files.h"
#include "support/process.h"

namespace hark::test {
namespace {

TEST(DecoderProcess, InheritsStandardInputOutputAndErrorsAlone) {
    const TemporaryDirectory directory;
    const std::string program = directory.path() / "program";
    write_text(program, "#!/bin/sh\nexec ls /proc/self/fd\n");
    std::filesystem::permissions(program, std::filesystem::perms::owner_all);
    const int upload = make_unlinked_file();
    EXPECT_EQ(::fcntl(upload, F_GETFD), FD_CLOEXEC);
    const int leak = ::dup(upload);  // has no FD_CLOEXEC
    std::string descriptors;
    {
        const serve::DecoderProcess decoder(program, upload);
        char piece[4096];
        for (ssize_t n; (n = ::read(decoder.out(), piece, sizeof piece)) > 0;)
            descriptors.append(piece, static_cast<size_t>(n));
    }
    EXPECT_EQ(descriptors, "0\n1\n2\n3\n");  // 3: the folder that ls reads
    ::close(leak);
    ::close(upload);
}

}  // namespace
}  // namespace hark::test
