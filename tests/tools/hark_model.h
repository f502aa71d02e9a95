// hark-model as a shell runs it, with a home of the test's own.
#pragma once

#include <gtest/gtest.h>

#include "support/expect.h"
#include "support/http_server.h"
#include "support/process.h"

namespace hark::test {

namespace fs = std::filesystem;

inline const fs::path kDemo = source_dir() / "models/whisper-demo";

class HarkModel : public ::testing::Test {
  protected:
    // With a $HOME of the test's own.
    ProcessResult hark_model(const std::string& arguments) {
        return shell("hark-model " + arguments);
    }
    ProcessResult shell(const std::string& command) {
        return run_shell("unset XDG_DATA_HOME; export HOME='" + home_.path().string() + "'; " +
                         command);
    }
    fs::path models() const { return home_.path() / ".local/share/hark/models"; }
    // The line of `hark-model list` that tells of a model.
    std::string listed(const std::string& name) {
        const ProcessResult list = hark_model("list");
        EXPECT_EQ(list.exit_code, 0) << list.err;
        const size_t at = list.out.find(" " + name + " ");
        if (at == std::string::npos) return "";
        const size_t begin = list.out.rfind('\n', at) + 1;
        return list.out.substr(begin, list.out.find('\n', at) - begin);
    }

    TemporaryDirectory home_;
};

inline HttpResponse mirror(const HttpRequest& request) {
    const std::string folder = "/openai/whisper-tiny/resolve/main/";
    const fs::path file = kDemo / fs::path(request.path).filename();
    if (!request.path.starts_with(folder) || !fs::exists(file)) return {404};
    HttpResponse response = in_parts(request, read_text(file));
    response.headers["ETag"] = "\"v1\"";
    return response;
}

}  // namespace hark::test
