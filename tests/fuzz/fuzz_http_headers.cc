// The headers of an HTTP answer, from any server.
#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "core/error.h"
#include "fuzz/target.h"
#include "hub/http_headers.h"

using namespace hark;
using namespace hark::fuzz;
using namespace hark::models;

static std::vector<std::string> http_headers_seeds() {
    const std::string sha256(64, 'a'), blob(40, '0');
    return {"HTTP/1.1 302 Found\r\nLocation: https://x/y\r\nX-Linked-ETag: \"" + sha256 +
                "\"\r\nX-Linked-Size: 151061672\r\n\r\n",
            "HTTP/1.1 307 x\r\n\r\nHTTP/2 200\r\nX-Repo-Commit: 0\r\nETag: W/\"" + blob +
                "\"\r\nContent-Length: 18446744073709551615\r\n\r\n",
            "bytes 100-199/200", "bytes */200"};
}

static int http_headers_input(const uint8_t* data, size_t size) {
    std::string_view text(reinterpret_cast<const char*>(data), size);
    begin_of_part(text);
    HttpHeaders headers;
    while (!text.empty()) {
        const size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
        headers.add(text.substr(0, end));
        text.remove_prefix(end);
    }
    try {
        const RemoteFile file = file_of(headers, "url");
        if (!file.found || (!file.sha256.empty() && file.sha256.size() != 64) ||
            (!file.git_blob.empty() && file.git_blob.size() != 40))
            std::abort();
    } catch (const Error&) {
    }
    return 0;
}

static const hark::fuzz::Target kHttpHeaders{"http_headers", http_headers_seeds,
                                             http_headers_input};
