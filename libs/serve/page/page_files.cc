#include "serve/page/page_files.h"

#include <map>
#include <string_view>

#include "core/error.h"
#include "whisper/output/page_parts.h"

namespace hark::serve {
namespace {

constexpr std::string_view kIndexHtml =
#include "serve/page/index.html.inc"
    ;
constexpr std::string_view kServerStyle =
#include "serve/page/page.css.inc"
    ;
// In this order, after those of whisper/output/page.
constexpr whisper::PageScript kServerScripts[] = {
    {
        "server.js",
#include "serve/page/server.js.inc"
    },
    {
        "upload.js",
#include "serve/page/upload.js.inc"
    },
    {
        "microphone.js",
#include "serve/page/microphone.js.inc"
    },
    {
        "chat.js",
#include "serve/page/chat.js.inc"
    },
    {
        "page.js",
#include "serve/page/page.js.inc"
    },
};
// For the thread of sound: microphone.js opens it.
constexpr whisper::PageScript kWorklet = {
    "recorder_worklet.js",
#include "serve/page/recorder_worklet.js.inc"
};

struct PageFile {
    const char* type;
    std::string text;
};

std::string script_tags() {
    std::string tags;
    const auto add = [&](const whisper::PageScript& script) {
        tags += concat("<script defer src=\"page/", script.name, "\"></script>\n");
    };
    for (const whisper::PageScript& script : whisper::page_scripts()) add(script);
    for (const whisper::PageScript& script : kServerScripts) add(script);
    return tags;
}

// By path.
std::map<std::string, PageFile> all_files() {
    std::map<std::string, PageFile> files;
    const auto add = [&](std::string_view name, const char* type, std::string text) {
        files[concat("/page/", name)] = {type, std::move(text)};
    };
    const auto add_script = [&](const whisper::PageScript& script) {
        add(script.name, "text/javascript; charset=utf-8", std::string(script.text));
    };
    for (const whisper::PageScript& script : whisper::page_scripts()) add_script(script);
    for (const whisper::PageScript& script : kServerScripts) add_script(script);
    add_script(kWorklet);
    constexpr const char* kCss = "text/css; charset=utf-8";
    add("transcript.css", kCss, std::string(whisper::page_style()));
    add("page.css", kCss, std::string(kServerStyle));
    const auto part = [](std::string_view name) {
        if (name == "recording") return std::string(whisper::page_recording());
        require(name == "scripts", "internal error: index.html has {{", name, "}}");
        return script_tags();
    };
    files["/"] = {"text/html; charset=utf-8", whisper::filled_page(kIndexHtml, part)};
    return files;
}

}  // namespace

WebResponse page_file(const std::string& path) {
    static const std::map<std::string, PageFile> kFiles = all_files();
    const auto found = kFiles.find(path);
    if (found == kFiles.end()) throw WebError(404, "no such file of the page");
    return {.content_type = found->second.type,
            .headers = {{"Content-Security-Policy",
                         "default-src 'none'; script-src 'self'; style-src 'self'; "
                         "connect-src 'self'; media-src blob:; img-src data:; base-uri 'none'; "
                         "form-action 'none'; frame-ancestors 'none'"},
                        {"X-Content-Type-Options", "nosniff"},
                        {"Referrer-Policy", "no-referrer"},
                        {"Cross-Origin-Resource-Policy", "same-origin"},
                        {"Permissions-Policy", "microphone=(self)"},
                        {"Cache-Control", "no-cache"}},
            .body = found->second.text};
}

}  // namespace hark::serve
