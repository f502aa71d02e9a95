// A folder of files that holds a fuzz target's input: each file is a letter, then its text up to a
// zero byte. After a capital letter its length follows in 4 bytes, then its bytes.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <string_view>

namespace hark::fuzz {

class InputFolder {
  public:
    explicit InputFolder(std::map<char, std::string> names) : names_(std::move(names)) {
        char name[] = "/tmp/hark-fuzz.XXXXXX";
        if (!::mkdtemp(name)) std::abort();
        path_ = name;
        for (const auto& [letter, file] : names_)
            std::filesystem::create_directories((path_ / file).parent_path());
    }
    ~InputFolder() { std::filesystem::remove_all(path_); }
    InputFolder(const InputFolder&) = delete;
    InputFolder& operator=(const InputFolder&) = delete;

    // The folder with the input's files alone.
    const std::filesystem::path& holding(const uint8_t* data, size_t size) {
        for (const std::string& name : written_) std::filesystem::remove(path_ / name);
        written_.clear();
        std::string_view input(reinterpret_cast<const char*>(data), size);
        while (!input.empty()) {
            const auto found = names_.find(input[0]);
            const bool has_length = is_capital(input[0]);
            input.remove_prefix(1);
            size_t length = input.find('\0');
            if (has_length && input.size() >= kLengthBytes) {
                uint32_t stated = 0;
                std::memcpy(&stated, input.data(), kLengthBytes);
                length = stated;
                input.remove_prefix(kLengthBytes);
            }
            length = std::min(length, input.size());
            if (found != names_.end()) write(found->second, input.substr(0, length));
            input.remove_prefix(std::min(length + (has_length ? 0 : 1), input.size()));
        }
        return path_;
    }

    // A file's part of a seed.
    static std::string part(char letter, const std::string& text) {
        if (!is_capital(letter)) return letter + text + '\0';
        const auto length = static_cast<uint32_t>(text.size());
        return letter + std::string(reinterpret_cast<const char*>(&length), kLengthBytes) + text;
    }

  private:
    static constexpr size_t kLengthBytes = 4;
    static bool is_capital(char c) { return c >= 'A' && c <= 'Z'; }

    void write(const std::string& name, std::string_view text) {
        std::ofstream(path_ / name, std::ios::binary) << text;
        written_.insert(name);
    }

    std::map<char, std::string> names_;
    std::filesystem::path path_;
    std::set<std::string> written_;
};

}  // namespace hark::fuzz
