#include "hub/digest.h"

#include <openssl/evp.h>

#include <memory>
#include <string_view>

#include "core/error.h"
#include "core/files/mapped_file.h"
#include "core/profile/profile.h"

namespace hark::models {
namespace {

constexpr size_t kPiece = size_t{16} << 20;  // let go again, so that a model needs no memory

std::string hex(const unsigned char* bytes, size_t n) {
    std::string text;
    for (size_t i = 0; i < n; ++i) {
        text += "0123456789abcdef"[bytes[i] >> 4];
        text += "0123456789abcdef"[bytes[i] & 15];
    }
    return text;
}

// An empty file cannot be mapped.
std::unique_ptr<MappedFile> content_of(const std::filesystem::path& file) {
    std::error_code failed;
    const auto bytes = std::filesystem::file_size(file, failed);
    return !failed && bytes == 0 ? nullptr : std::make_unique<MappedFile>(file);
}

std::string digest(const EVP_MD* method, std::string_view prefix, const MappedFile* file) {
    const ProfileSpan span("hash");
    const std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> state(EVP_MD_CTX_new(),
                                                                   EVP_MD_CTX_free);
    unsigned char result[EVP_MAX_MD_SIZE];
    unsigned size = 0;
    bool good = state && EVP_DigestInit_ex(state.get(), method, nullptr) == 1 &&
                EVP_DigestUpdate(state.get(), prefix.data(), prefix.size()) == 1;
    for (size_t at = 0; good && file && at < file->size(); at += kPiece) {
        const size_t n = std::min(kPiece, file->size() - at);
        good = EVP_DigestUpdate(state.get(), file->data() + at, n) == 1;
        file->forget(at, n);
    }
    require(good && EVP_DigestFinal_ex(state.get(), result, &size) == 1,
            "libcrypto cannot compute ", EVP_MD_get0_name(method));
    return hex(result, size);
}

}  // namespace

std::string sha256_of(const std::filesystem::path& file) {
    return digest(EVP_sha256(), "", content_of(file).get());
}

std::string sha256_of_text(std::string_view text) { return digest(EVP_sha256(), text, nullptr); }

std::string git_blob_of(const std::filesystem::path& file) {
    const std::unique_ptr<MappedFile> content = content_of(file);
    std::string prefix = concat("blob ", content ? content->size() : 0);
    prefix += '\0';
    return digest(EVP_sha1(), prefix, content.get());
}

}  // namespace hark::models
