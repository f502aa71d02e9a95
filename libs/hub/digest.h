// Hashes of a file's content, and of a text.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace hark::models {

// Returns the SHA-256 of the content as 64 hexadecimal digits. Throws Error naming the file.
std::string sha256_of(const std::filesystem::path& file);
// The same of a text.
std::string sha256_of_text(std::string_view text);

// Returns git's object name of the content as 40 hexadecimal digits: the SHA-1 of "blob SIZE\0" and
// the content. Source: Pro Git, 10.2 "Git Objects".
std::string git_blob_of(const std::filesystem::path& file);

}  // namespace hark::models
