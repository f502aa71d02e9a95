// Forms and boundaries of HTTP requests. The first byte says how the rest is cut.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "fuzz/attempt.h"
#include "fuzz/target.h"
#include "serve/web/form.h"
#include "serve/web/paths.h"

using namespace hark;
using namespace hark::fuzz;

static std::vector<std::string> web_form_seeds() {
    const std::string part = "--b\r\nContent-Disposition: form-data; name=\"";
    return {
        "\x01" + part + "model\"\r\n\r\ndemo\r\n" + part +
            "file\"; filename=\"a.wav\"\r\nContent-Type: audio/wav\r\n\r\nRIFF\r\n--x\r\n--b--\r\n",
        "\x05preamble\r\n" + part +
            "a\"\r\n\r\n\r\n--b  \r\nx: y\r\ncontent-disposition: a; "
            "name=b; filename*=c\r\n\r\n\r\n\r\n--b--",
        "\xff"
        "multipart/form-data; boundary=\"a\\\"b\"; x",
        "\x10/v1/models/a%2fb?x"};
}

namespace {

struct ReadForm {
    serve::Form form;
    std::string error = "none", file;
};

ReadForm read_form(std::string_view text, size_t piece) {
    ReadForm read;
    try {
        serve::MultipartReader reader("b", read.form);
        for (size_t at = 0; at < text.size(); at += piece) reader.add(text.substr(at, piece));
        reader.finish();
    } catch (const Error& why) {
        read.error = why.what();
    }
    if (!read.form.file) return read;
    read.file.resize(read.form.file->bytes());
    if (::pread(read.form.file->fd(), read.file.data(), read.file.size(), 0) !=
        static_cast<ssize_t>(read.file.size()))
        std::abort();
    return read;
}

}  // namespace

static int web_form_input(const uint8_t* data, size_t size) {
    if (size == 0) return 0;
    const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
    attempt([&] {
        const std::string boundary = serve::form_boundary(text);
        if (boundary.empty() || boundary.size() > 70) std::abort();
    });
    if (serve::path_of(text).size() > text.size()) std::abort();
    // Wherever it is cut, it is the same form.
    const ReadForm whole = read_form(text, text.size() + 1);
    const ReadForm cut = read_form(text, std::max<size_t>(data[0], 1));
    if (whole.error != cut.error) std::abort();
    if (whole.error != "none") return 0;
    if (whole.form.fields != cut.form.fields || whole.file != cut.file) std::abort();
    return 0;
}

static const hark::fuzz::Target kWebForm{"web_form", web_form_seeds, web_form_input};
