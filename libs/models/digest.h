// Hashes by which a file that was fetched is known.
#pragma once

#include <filesystem>
#include <string>

namespace hark::models {

// SHA-256 of the file's content as 64 hexadecimal digits. Throws Error naming the file.
std::string sha256_of(const std::filesystem::path& file);

// The name that git gives the content, as 40 hexadecimal digits: SHA-1 of "blob SIZE\0" and the
// content. Source: Pro Git, 10.2 "Git Objects".
std::string git_blob_of(const std::filesystem::path& file);

}  // namespace hark::models
