// Forms: cut anywhere they give the same, and what is not one is refused.
#include "serve/web/form.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "serve/web/web_error.h"
#include "support/error_of.h"
#include "support/expect.h"

namespace hark::serve {
namespace {

using test::error_of;
using test::expect_contains;

const std::string kBoundary = "x--42";

std::string text_part(const std::string& name, const std::string& value) {
    return "--x--42\r\nContent-Disposition: form-data; name=\"" + name + "\"\r\n\r\n" + value +
           "\r\n";
}

std::string file_part(const std::string& bytes) {
    return "--x--42\r\ncontent-disposition: form-data; name=file; filename=\"a \\\"b\\\".wav\"\r\n"
           "Content-Type: audio/wav\r\n\r\n" +
           bytes + "\r\n";
}

const std::string kEnd = "--x--42--\r\n";

std::string content_of(const Form& form) {
    std::string bytes(form.file->bytes(), '\0');
    EXPECT_EQ(::pread(form.file->fd(), bytes.data(), bytes.size(), 0),
              static_cast<ssize_t>(bytes.size()));
    return bytes;
}

// Reads the text in pieces of that many bytes.
Form form_of(const std::string& text, size_t piece) {
    Form form;
    MultipartReader reader(kBoundary, form);
    for (size_t at = 0; at < text.size(); at += piece) reader.add(text.substr(at, piece));
    reader.finish();
    return form;
}

std::string refusal_of(const std::string& text) {
    return error_of([&] { form_of(text, text.size() + 1); });
}

TEST(ServeForm, IsTheSameHoweverItIsCut) {
    // The file's bytes have what looks like a boundary, and its beginnings.
    const std::string bytes =
        "\r\n--x--4\r\n--x-\r\n-\r--x--42--\r\n\r\n--x\0--42" + std::string(200000, '\r') + "\n";
    const std::string text = "ignored\r\n" + text_part("model", "demo") + file_part(bytes) +
                             text_part("empty", "") + text_part("model", "two\r\nlines") + kEnd +
                             "ignored too";
    const std::vector<std::pair<std::string, std::string>> fields = {
        {"model", "demo"}, {"empty", ""}, {"model", "two\r\nlines"}};
    for (const size_t piece : {1ul, 2ul, 3ul, 7ul, 64ul, 4096ul, text.size()}) {
        const Form form = form_of(text, piece);
        EXPECT_EQ(form.fields, fields) << piece;
        ASSERT_TRUE(form.file);
        EXPECT_EQ(content_of(form), bytes) << piece;
    }
}

TEST(ServeForm, SpacesMayFollowABoundary) {
    std::string text = text_part("a", "b") + kEnd;
    text.insert(kBoundary.size() + 2, " \t ");
    EXPECT_EQ(form_of(text, 1).fields.size(), 1u);
}

TEST(ServeForm, WhatIsNotAFormIsRefused) {
    expect_contains(refusal_of(""), "ends before its last boundary");
    expect_contains(refusal_of(text_part("a", "b")), "ends before its last boundary");
    expect_contains(refusal_of("--x--42xx" + kEnd), "not the whole line");
    expect_contains(refusal_of("--x--42\r\nContent-Type: a/b\r\n\r\nv\r\n" + kEnd), "no name");
    expect_contains(
        refusal_of("--x--42\r\nContent-Disposition: form-data; name=\"a\r\n\r\nv\r\n" + kEnd),
        "no name");
    expect_contains(refusal_of("--x--42\r\nA: " + std::string(20000, 'b')), "head is too long");
    expect_contains(refusal_of(text_part("a", std::string(300000, 'b')) + kEnd), "too large");
    expect_contains(refusal_of(file_part("a") + file_part("b") + kEnd), "two files");
    std::string other = file_part("a") + kEnd;
    other.replace(other.find("name=file"), 9, "name=mask");
    expect_contains(refusal_of(other), "another field than file");
    std::string many;
    for (int i = 0; i < 200; ++i) many += text_part("a", "b");
    expect_contains(refusal_of(many + kEnd), "too many fields");
}

TEST(ServeForm, BoundariesComeFromTheContentType) {
    EXPECT_EQ(form_boundary("multipart/form-data; boundary=abc"), "abc");
    EXPECT_EQ(form_boundary("Multipart/Form-Data; charset=utf-8; Boundary=\"a;b\""), "a;b");
    const auto refusal = [](const std::string& type) {
        return error_of([&] { form_boundary(type); });
    };
    expect_contains(refusal("application/json"), "expected multipart/form-data");
    expect_contains(refusal("multipart/form-data"), "no boundary");
    expect_contains(refusal("multipart/form-data; boundary="), "no boundary");
    expect_contains(refusal("multipart/form-data; boundary=" + std::string(71, 'a')),
                    "no boundary");
}

}  // namespace
}  // namespace hark::serve
