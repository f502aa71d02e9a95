// Token files, mapped and as a stream: both accept the same, and give the same ids.
#include "core/error.h"
#include "core/files/files.h"
#include "fuzz/memory_file.h"
#include "fuzz/target.h"
#include "text/token_file.h"

using namespace hark;
using namespace hark::fuzz;

namespace {

std::string token_file(const TokenHeader& header, size_t bytes) {
    return header.text() + std::string(bytes, '\x07');
}

// Whether all of the file could be read.
template <class F>
bool accepts(const F& read) {
    try {
        read();
        return true;
    } catch (const Error&) {
        return false;
    }
}

}  // namespace

static std::vector<std::string> token_file_seeds() {
    return {token_file({3, 2}, 6), token_file({2, 4}, 8), token_file({0, 2}, 0)};
}

static int token_file_input(const uint8_t* data, size_t size) {
    const fuzz::MemoryFile input(data, size);
    const std::string_view bytes(reinterpret_cast<const char*>(data), size);
    std::vector<int32_t> mapped, streamed;
    const bool whole = accepts([&] {
        const TokenFile file(input.path());
        mapped.resize(file.size());
        file.copy(0, file.size(), mapped.data());
        accepts([&] { file.check_vocabulary(300); });
    });
    const bool read = accepts([&] {
        ByteReader in(input.fd(), "stream");
        TokenReader reader(in);
        for (auto ids = reader.next(100); !ids.empty(); ids = reader.next(100))
            streamed.insert(streamed.end(), ids.begin(), ids.end());
    });
    if (whole && read) {  // written again, it is the same file
        const fuzz::MemoryFile again(nullptr, 0);
        TokenWriter writer(again.fd(), "again", TokenHeader::parse(bytes, "again").id_bytes);
        writer.write(mapped);
        writer.finish();
        const std::string written = read_file(again.path());
        if (written.substr(kTokenHeaderBytes) != bytes.substr(kTokenHeaderBytes)) std::abort();
    }
    if (whole != read || (whole && mapped != streamed)) std::abort();
    return 0;
}

static const hark::fuzz::Target kTokenFile{"token_file", token_file_seeds, token_file_input};
