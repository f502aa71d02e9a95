// TensorBoard's event files: checksums, frames, and what is in them.
#include "gpt/train/event_file.h"

#include <gtest/gtest.h>

#include <bit>
#include <chrono>
#include <cstring>
#include <map>
#include <vector>

#include "core/error.h"
#include "support/process.h"

using namespace hark;
using namespace hark::gpt;

namespace {

template <class T>
T take(std::string_view& bytes) {
    T value{};
    if (bytes.size() < sizeof value) throw Error("cut short");
    std::memcpy(&value, bytes.data(), sizeof value);
    bytes.remove_prefix(sizeof value);
    return value;
}

// The masked checksum by its definition, from the right end on.
uint32_t masked(std::string_view bytes) {
    const uint32_t crc = crc32c(bytes);
    return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

std::vector<std::string> records_of(std::string_view file) {
    std::vector<std::string> records;
    while (!file.empty()) {
        const std::string_view head = file.substr(0, 8);
        const auto size = take<uint64_t>(file);
        EXPECT_EQ(take<uint32_t>(file), masked(head));
        if (size > file.size()) throw Error("cut short");
        records.emplace_back(file.substr(0, size));
        file.remove_prefix(size);
        EXPECT_EQ(take<uint32_t>(file), masked(records.back()));
    }
    return records;
}

uint64_t varint(std::string_view& bytes) {
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
        const auto byte = take<uint8_t>(bytes);
        value |= static_cast<uint64_t>(byte & 127) << shift;
        if (byte < 128) return value;
    }
}

// A message's fields in their order: number, and the value's bytes (a varint's as eight).
std::vector<std::pair<int, std::string>> fields_of(std::string_view bytes) {
    std::vector<std::pair<int, std::string>> fields;
    while (!bytes.empty()) {
        const uint64_t key = varint(bytes);
        std::string value(8, '\0');
        size_t size = key % 8 == 1 ? 8 : 4;
        if (key % 8 == 0) {
            const uint64_t number = varint(bytes);
            std::memcpy(value.data(), &number, 8);
            size = 0;
        } else {
            if (key % 8 == 2) size = varint(bytes);
            value = std::string(bytes.substr(0, size));
        }
        bytes.remove_prefix(size);
        fields.emplace_back(static_cast<int>(key / 8), value);
    }
    return fields;
}

template <class T>
T as(const std::string& bytes) {
    EXPECT_EQ(bytes.size(), sizeof(T));
    T value;
    std::memcpy(&value, bytes.data(), sizeof value);
    return value;
}

}  // namespace

// RFC 3720, section B.4.
TEST(EventFile, ChecksumsAreTheStandards) {
    std::string up, down;
    for (char i = 0; i < 32; ++i) up += i, down += static_cast<char>(31 - i);
    EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aau);
    EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62a8ab43u);
    EXPECT_EQ(crc32c(up), 0x46dd794eu);
    EXPECT_EQ(crc32c(down), 0x113fdb5cu);
    EXPECT_EQ(crc32c("123456789"), 0xe3069283u);
    EXPECT_EQ(crc32c(""), 0u);
}

TEST(EventFile, HoldsTheScalarsOfItsSteps) {
    const test::TemporaryDirectory folder;
    const auto now = [] {
        return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch())
            .count();
    };
    const double begin = now();
    std::filesystem::path path;
    {
        EventFile file(folder.path() / "a" / "b", 1);
        path = file.path();
        const std::vector<EventFile::Scalar> first = {{"loss", 4.25}, {"norm", 1e-3}};
        file.add(1, first);
        const std::vector<EventFile::Scalar> second = {{"loss", -2}};
        file.add(300, second);
        // A reader sees each event at once.
        EXPECT_EQ(records_of(test::read_text(path)).size(), 3u);
    }
    EXPECT_TRUE(path.filename().string().starts_with("events.out.tfevents.")) << path;
    const std::vector<std::string> records = records_of(test::read_text(path));
    ASSERT_EQ(records.size(), 3u);
    const auto version = fields_of(records[0]);
    ASSERT_EQ(version.size(), 2u);
    EXPECT_EQ(version[1], (std::pair<int, std::string>(3, "brain.Event:2")));
    const std::vector<std::map<std::string, float>> expected = {{{"loss", 4.25f}, {"norm", 1e-3f}},
                                                                {{"loss", -2.0f}}};
    for (size_t i = 0; i < 2; ++i) {
        const auto event = fields_of(records[i + 1]);
        ASSERT_EQ(event.size(), 3u);
        EXPECT_EQ(event[0].first, 1);
        EXPECT_GE(as<double>(event[0].second), begin);
        EXPECT_LE(as<double>(event[0].second), now());
        EXPECT_EQ(event[1].first, 2);
        EXPECT_EQ(as<uint64_t>(event[1].second), i == 0 ? 1u : 300u);
        EXPECT_EQ(event[2].first, 5);
        std::map<std::string, float> found;
        for (const auto& [field, value] : fields_of(event[2].second)) {
            EXPECT_EQ(field, 1);
            const auto parts = fields_of(value);
            ASSERT_EQ(parts.size(), 2u);
            EXPECT_EQ(parts[0].first, 1);
            EXPECT_EQ(parts[1].first, 2);
            found[parts[0].second] = as<float>(parts[1].second);
        }
        EXPECT_EQ(found, expected[i]);
    }
}

TEST(EventFile, ARunThatGoesOnSaysFromWhere) {
    const test::TemporaryDirectory folder;
    const EventFile file(folder.path(), 11);
    const std::vector<std::string> records = records_of(test::read_text(file.path()));
    ASSERT_EQ(records.size(), 2u);
    const auto event = fields_of(records[1]);
    ASSERT_EQ(event.size(), 3u);
    EXPECT_EQ(as<uint64_t>(event[1].second), 11u);
    EXPECT_EQ(event[2], (std::pair<int, std::string>(7, "\x08\x01")));  // SessionLog, START
}

TEST(EventFile, WhatCannotBeMadeIsNamed) {
    const test::TemporaryDirectory folder;
    test::write_text(folder.path() / "file", "");
    try {
        EventFile file(folder.path() / "file", 1);
        ADD_FAILURE() << "made in a file";
    } catch (const Error& error) {
        EXPECT_NE(std::string(error.what()).find((folder.path() / "file").string()),
                  std::string::npos)
            << error.what();
    }
}
