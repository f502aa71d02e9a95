#include "hub/http.h"

#include <curl/curl.h>

#include <cstdlib>
#include <exception>
#include <optional>
#include <vector>

#include "core/cli/version.h"
#include "core/profile/profile.h"
#include "core/sandbox/privacy.h"
#include "hub/http_address.h"

namespace hark::models {
namespace {

constexpr long kMaxRedirects = 10;
constexpr long kConnectSeconds = 30;

// The callbacks' data. libcurl is C: an exception is kept here until the transfer ends.
struct Transfer {
    HttpHeaders headers;  // of the latest answer
    std::function<void(std::string_view)> body;
    std::exception_ptr failure;
};

size_t take(void* user, size_t size, const std::function<void(Transfer&)>& use) {
    auto& transfer = *static_cast<Transfer*>(user);
    try {
        use(transfer);
        return size;
    } catch (...) {
        transfer.failure = std::current_exception();
        return size + 1;  // ends the transfer
    }
}

size_t on_header(char* data, size_t, size_t size, void* user) {
    return take(user, size, [&](Transfer& transfer) { transfer.headers.add({data, size}); });
}

size_t on_body(char* data, size_t, size_t size, void* user) {
    return take(user, size, [&](Transfer& transfer) {
        if (transfer.body) transfer.body({data, size});
    });
}

// Headers that are sent in addition to libcurl's own.
class HeaderList {
  public:
    ~HeaderList() { curl_slist_free_all(list_); }
    HeaderList() = default;
    HeaderList(const HeaderList&) = delete;

    void add(const std::string& line) {
        curl_slist* const longer = curl_slist_append(list_, line.c_str());
        require(longer != nullptr, "libcurl: out of memory");
        list_ = longer;
    }
    curl_slist* get() const { return list_; }

  private:
    curl_slist* list_ = nullptr;
};

// Whether a failure of the transport may be gone at the next attempt.
bool may_pass(CURLcode code) {
    switch (code) {
        case CURLE_COULDNT_RESOLVE_PROXY:
        case CURLE_COULDNT_RESOLVE_HOST:
        case CURLE_COULDNT_CONNECT:
        case CURLE_PARTIAL_FILE:
        case CURLE_OPERATION_TIMEDOUT:
        case CURLE_SSL_CONNECT_ERROR:
        case CURLE_GOT_NOTHING:
        case CURLE_SEND_ERROR:
        case CURLE_RECV_ERROR:
        case CURLE_HTTP2:
        case CURLE_HTTP2_STREAM:
            return true;
        default:
            return false;
    }
}

bool may_pass(long status) { return status == 408 || status == 429 || status >= 500; }

bool is_redirect(long status) { return status >= 301 && status <= 308 && status != 304; }

const char* meaning_of(long status) {
    if (status == 401 || status == 403) return ": no such model, or not public";
    if (status == 429) return ": too many requests; run the same command again later";
    return status == 404 ? ": no such file" : "";
}

[[noreturn]] void fail_with(long status, const std::string& url, const HttpHeaders& headers) {
    const std::string message =
        concat(url, ": the server refused (HTTP status ", status, meaning_of(status), ")");
    const std::optional<int64_t> wait = seconds_of(headers.get("retry-after"));
    if (wait && (status == 429 || status == 503)) throw BusyServer(message, *wait);
    if (may_pass(status)) throw TransferError(message);
    throw Refusal(message, status, headers.get("x-error-code"));
}

}  // namespace

struct HttpClient::Impl {
    CURL* curl = nullptr;
    int64_t stall_seconds = 0;
    char message[CURL_ERROR_SIZE] = "";
    std::optional<Address> trusted;  // that the token is for
    std::string token;

    template <class Value>
    void set(CURLoption option, Value value) {
        require(curl_easy_setopt(curl, option, value) == CURLE_OK, "libcurl refuses option ",
                static_cast<int>(option));
    }

    // Prepares the handle for a URL. Open connections are kept.
    void ready(const std::string& url, Transfer& transfer) {
        curl_easy_reset(curl);
        message[0] = '\0';
        set(CURLOPT_URL, url.c_str());
        set(CURLOPT_ERRORBUFFER, message);
        set(CURLOPT_USERAGENT, concat("hark-model/", kVersion).c_str());
        set(CURLOPT_NOSIGNAL, 1L);
        set(CURLOPT_PROTOCOLS_STR, "http,https");
        if (const char* trusted_file = std::getenv("SSL_CERT_FILE"))
            set(CURLOPT_CAINFO, trusted_file);
        set(CURLOPT_CONNECTTIMEOUT, kConnectSeconds);
        set(CURLOPT_LOW_SPEED_LIMIT, 1L);
        set(CURLOPT_LOW_SPEED_TIME, static_cast<long>(stall_seconds));
        set(CURLOPT_HEADERFUNCTION, on_header);
        set(CURLOPT_HEADERDATA, &transfer);
        set(CURLOPT_WRITEFUNCTION, on_body);
        set(CURLOPT_WRITEDATA, &transfer);
    }

    // Returns the answer's status. Messages name `url`, not the signed address of a redirect.
    long perform(const std::string& url, Transfer& transfer) {
        require(!is_offline(), url,
                ": not requested, because HARK_OFFLINE is set; unset it to use the network");
        const CURLcode code = [&] {
            const ProfileSpan span("wait.in");
            return curl_easy_perform(curl);
        }();
        if (transfer.failure) std::rethrow_exception(transfer.failure);
        if (code == CURLE_OK) return status();
        const std::string why = concat(url, ": ", *message ? message : curl_easy_strerror(code));
        if (may_pass(code)) throw TransferError(why);
        throw Error(why);
    }

    long status() const {
        long status = 0;
        curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
        return status;
    }

    std::string redirect() const {
        char* url = nullptr;
        curl_easy_getinfo(curl, CURLINFO_REDIRECT_URL, &url);
        return url ? url : "";
    }

    // What a request asks for.
    struct Request {
        bool head = false;
        std::string range, if_range;  // empty: all of it
    };

    // Sends a request, follows redirects, and passes the final answer's body to `body`. Redirects
    // are followed here, not by libcurl: the token goes to its own server alone. `is_final` may
    // take the answer of a redirect for the final one. Returns the final answer's headers.
    HttpHeaders follow(const std::string& url, const Request& request,
                       const std::function<bool(const HttpHeaders&)>& is_final,
                       const std::function<void(const HttpHeaders&, std::string_view)>& body) {
        std::string at = url;
        bool left = false;  // the token's server
        for (long hop = 0; hop <= kMaxRedirects; ++hop) {
            Transfer transfer;
            ready(at, transfer);
            if (request.head) set(CURLOPT_NOBODY, 1L);
            if (!request.range.empty()) set(CURLOPT_RANGE, request.range.c_str());
            HeaderList headers;
            if (!request.if_range.empty()) headers.add("If-Range: " + request.if_range);
            left = left || !trusted || address_of(at) != trusted;
            if (!left) {
                headers.add("Authorization: Bearer " + token);
                // A proxy would read what goes to this machine itself.
                if (trusted->scheme == "http") set(CURLOPT_PROXY, "");
            }
            set(CURLOPT_HTTPHEADER, headers.get());
            transfer.body = [&](std::string_view bytes) {
                if (!is_redirect(status())) body(transfer.headers, bytes);
            };
            perform(url, transfer);
            const std::string next = redirect();
            if (next.empty() || is_final(transfer.headers)) return transfer.headers;
            require(next.starts_with("https://") || !at.starts_with("https://"), url,
                    ": the server redirects from https to another protocol");
            at = next;
        }
        fail(url, ": more than ", kMaxRedirects, " redirects");
    }
};

HttpClient::HttpClient(int64_t stall_seconds) : impl_(std::make_unique<Impl>()) {
    static const CURLcode started = curl_global_init(CURL_GLOBAL_DEFAULT);
    impl_->curl = started == CURLE_OK ? curl_easy_init() : nullptr;
    impl_->stall_seconds = stall_seconds;
    require(impl_->curl != nullptr, "cannot start libcurl");
}

HttpClient::~HttpClient() { curl_easy_cleanup(impl_->curl); }

void HttpClient::authorize(const std::string& server, const std::string& token) {
    require(is_token(token), "expected a token of visible ASCII characters, found another text");
    require(is_private(server), server, ": a token is sent over https, or to this machine itself");
    impl_->trusted = address_of(server);
    impl_->token = token;
}

std::string HttpClient::text(const std::string& url, size_t limit) {
    std::string text;
    const auto take = [&](const HttpHeaders& headers, std::string_view bytes) {
        if (impl_->status() != 200) fail_with(impl_->status(), url, headers);
        require(bytes.size() <= limit - text.size(), url, ": the answer is longer than ", limit,
                " bytes");
        text += bytes;
    };
    const auto never = [](const HttpHeaders&) { return false; };
    const HttpHeaders headers = impl_->follow(url, {}, never, take);
    if (impl_->status() != 200) fail_with(impl_->status(), url, headers);
    return text;
}

RemoteFile HttpClient::ask(const std::string& url) {
    // The redirect with X-Linked-ETag leads to a signed address, which may be refused for anything
    // but GET.
    const auto tells = [](const HttpHeaders& headers) { return headers.tell_of_linked_file(); };
    const HttpHeaders headers = impl_->follow(url, {.head = true}, tells, nullptr);
    const long status = impl_->status();
    if (status == 404) return {};
    if (status != 200 && !tells(headers)) fail_with(status, url, headers);
    return file_of(headers, url);
}

void HttpClient::get(const std::string& url, uint64_t offset, const std::string& if_range,
                     const std::function<void(uint64_t)>& begin,
                     const std::function<void(std::string_view)>& take) {
    bool begun = false;
    const auto start = [&](const HttpHeaders& headers) {
        const long status = impl_->status();
        begun = true;
        if (status != 200 && status != 206) fail_with(status, url, headers);
        if (!if_range.empty()) {
            const bool by_tag = if_range.starts_with('"');
            const std::string now = headers.get(by_tag ? "etag" : "last-modified");
            if (!now.empty() && !now.starts_with("W/") && now != if_range)
                throw ChangedFile(concat(url, ": the file has changed (got version ", now,
                                         ", expected ", if_range, ")"));
        }
        if (status == 200) return begin(0);
        const std::string range = headers.get("content-range");
        require(begin_of_part(range) == offset, url,
                ": wrong part of the file (got Content-Range '", range,
                "', expected one from byte ", offset, ")");
        begin(offset);
    };
    Impl::Request request;
    if (offset > 0) request = {.range = concat(offset, "-"), .if_range = if_range};
    const auto never = [](const HttpHeaders&) { return false; };
    const HttpHeaders headers =
        impl_->follow(url, request, never, [&](const HttpHeaders& now, std::string_view bytes) {
            if (!begun) start(now);
            take(bytes);
        });
    if (!begun) start(headers);  // an empty file
}

}  // namespace hark::models
