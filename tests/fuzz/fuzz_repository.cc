// A server's list of a repository's files, and the names that a user gives for them.
#include <algorithm>
#include <cstdlib>
#include <string>

#include "core/error.h"
#include "core/models/models.h"
#include "fuzz/target.h"
#include "hub/http_address.h"
#include "hub/repository.h"

using namespace hark;
using namespace hark::fuzz;
using namespace hark::models;

namespace {

void check(bool holds) {
    if (!holds) std::abort();
}

// What a local file may be called.
void check_local(const std::vector<ListedFile>& files) {
    check(!files.empty());
    for (const ListedFile& file : files) {
        std::string name = file.local_name();
        if (name.ends_with("_Pooling/config.json")) name.erase(name.find('/'));
        check(!name.empty() && name.size() <= 255 && name != "." && name != "..");
        check(name.find_first_of("/\\\n") == std::string::npos);
        check(file.name.front() != '/' &&
              ("/" + file.name + "/").find("/../") == std::string::npos);
        check(!file.remote.found || file.remote.has_hash());
    }
}

void try_list(const std::string& text) {
    try {
        const Repository repository = parse_repository(text, "list");
        check(repository.commit.size() == 40 && repository.license.size() <= 64);
        for (const char* selection : {"", "Q4_K_M", "q8_0", "m.gguf", "a/m-00001-of-00002.gguf"})
            try {
                const RepositoryName name = {"o/r", "", selection};
                check_local(*selection ? selected_files(repository, name)
                                       : folder_files(repository, "o/r"));
            } catch (const Error&) {
            }
    } catch (const Error&) {
    }
}

void try_name(const std::string& text) {
    try {
        const RepositoryName name = parse_repository_name(text);
        const std::string installed = name.installed();
        check(std::count(installed.begin(), installed.end(), '/') == 1);
        check(installed_name(installed) == installed);
        check(percent_encoded(name.revision, false).find_first_of("/?#") == std::string::npos);
    } catch (const Error&) {
    }
}

}  // namespace

static std::vector<std::string> repository_seeds() {
    const std::string sha1(40, 'a'), sha256(64, 'b');
    const auto file = [&](const std::string& name) {
        return R"({"rfilename":")" + name + R"(","size":12,"blobId":")" + sha1 + "\"}";
    };
    const std::string begin = R"({"id":"o/r","sha":")" + sha1 + R"(","gated":"manual",)" +
                              R"("cardData":{"license":"other","license_name":"llama3.1"},)" +
                              R"("tags":["license:mit"],"siblings":[)";
    return {begin + file("config.json") + "," + file("tokenizer.json") +
                R"(,{"rfilename":"model.safetensors","size":99,"lfs":{"sha256":")" + sha256 +
                R"(","size":99,"pointerSize":134}}]})",
            begin + file("m-Q4_K_M.gguf") + "," + file("m-Q8_0.gguf") + "," + file("m.gguf") + "]}",
            begin + file("a/m-00001-of-00002.gguf") + "," + file("a/m-00002-of-00002.gguf") + "]}",
            begin + file("../x.gguf") + "]}",
            R"({"sha":")" + sha1 + R"(","siblings":[],"cardData":{"license":["mit"]}})",
            "http://127.0.0.1:8080/a",
            "https://user@[::1]/a",
            "ftp://x/",
            "hf_token",
            "o/r@refs/pr/1:a/m.gguf",
            "modularai/Llama-3.1-8B-Instruct-GGUF:Q4_K_M"};
}

static int repository_input(const uint8_t* data, size_t size) {
    const std::string text(reinterpret_cast<const char*>(data), size);
    try_list(text);
    try_name(text);
    seconds_of(text);
    is_private(text);
    is_token(text);
    return 0;
}

static const hark::fuzz::Target kRepository{"repository", repository_seeds, repository_input};
