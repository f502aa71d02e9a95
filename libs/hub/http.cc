#include "hub/http.h"

#include <curl/curl.h>

#include <cstdlib>
#include <exception>

#include "core/version.h"

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

size_t on_header(char* data, size_t, size_t size, void* user) {
    static_cast<Transfer*>(user)->headers.add({data, size});
    return size;
}

size_t on_body(char* data, size_t, size_t size, void* user) {
    auto& transfer = *static_cast<Transfer*>(user);
    try {
        if (transfer.body) transfer.body({data, size});
        return size;
    } catch (...) {
        transfer.failure = std::current_exception();
        return size + 1;  // ends the transfer
    }
}

// A header that is sent in addition to libcurl's own, or none.
class HeaderList {
  public:
    explicit HeaderList(const std::string& line)
        : list_(line.empty() ? nullptr : curl_slist_append(nullptr, line.c_str())) {
        require(list_ || line.empty(), "libcurl: out of memory");
    }
    ~HeaderList() { curl_slist_free_all(list_); }
    HeaderList(const HeaderList&) = delete;

    curl_slist* get() const { return list_; }

  private:
    curl_slist* list_;
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

const char* meaning_of(long status) {
    if (status == 401 || status == 403) return ": no such model, or not public";
    return status == 404 ? ": no such file" : "";
}

[[noreturn]] void fail_with(long status, const std::string& url) {
    const std::string message =
        concat(url, ": the server refused (HTTP status ", status, meaning_of(status), ")");
    if (may_pass(status)) throw TransferError(message);
    throw Error(message);
}

}  // namespace

struct HttpClient::Impl {
    CURL* curl = nullptr;
    int64_t stall_seconds = 0;
    char message[CURL_ERROR_SIZE] = "";

    // Prepares the handle for a URL. Open connections are kept.
    void ready(const std::string& url, Transfer& transfer) {
        curl_easy_reset(curl);
        message[0] = '\0';
        const auto set = [&](CURLoption option, auto value) {
            require(curl_easy_setopt(curl, option, value) == CURLE_OK, "libcurl refuses option ",
                    static_cast<int>(option));
        };
        set(CURLOPT_URL, url.c_str());
        set(CURLOPT_ERRORBUFFER, message);
        set(CURLOPT_USERAGENT, concat("hark-model/", kVersion).c_str());
        set(CURLOPT_NOSIGNAL, 1L);
        set(CURLOPT_PROTOCOLS_STR, "http,https");
        // HTTPS is never redirected to HTTP.
        set(CURLOPT_REDIR_PROTOCOLS_STR, url.starts_with("http://") ? "http,https" : "https");
        if (const char* trusted = std::getenv("SSL_CERT_FILE")) set(CURLOPT_CAINFO, trusted);
        set(CURLOPT_MAXREDIRS, kMaxRedirects);
        set(CURLOPT_CONNECTTIMEOUT, kConnectSeconds);
        set(CURLOPT_LOW_SPEED_LIMIT, 1L);
        set(CURLOPT_LOW_SPEED_TIME, static_cast<long>(stall_seconds));
        set(CURLOPT_HEADERFUNCTION, on_header);
        set(CURLOPT_HEADERDATA, &transfer);
        set(CURLOPT_WRITEFUNCTION, on_body);
        set(CURLOPT_WRITEDATA, &transfer);
    }

    // Returns the answer's status.
    long perform(const std::string& url, Transfer& transfer) {
        const CURLcode code = curl_easy_perform(curl);
        if (transfer.failure) std::rethrow_exception(transfer.failure);
        long status = 0;
        curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
        if (code == CURLE_HTTP_RETURNED_ERROR) fail_with(status, url);
        if (code == CURLE_OK) return status;
        const std::string why = concat(url, ": ", *message ? message : curl_easy_strerror(code));
        if (may_pass(code)) throw TransferError(why);
        throw Error(why);
    }

    std::string redirect() {
        char* url = nullptr;
        curl_easy_getinfo(curl, CURLINFO_REDIRECT_URL, &url);
        return url ? url : "";
    }
};

HttpClient::HttpClient(int64_t stall_seconds) : impl_(std::make_unique<Impl>()) {
    static const CURLcode started = curl_global_init(CURL_GLOBAL_DEFAULT);
    impl_->curl = started == CURLE_OK ? curl_easy_init() : nullptr;
    impl_->stall_seconds = stall_seconds;
    require(impl_->curl != nullptr, "cannot start libcurl");
}

HttpClient::~HttpClient() { curl_easy_cleanup(impl_->curl); }

RemoteFile HttpClient::ask(const std::string& url) {
    // Redirects are followed by hand: the one with X-Linked-ETag leads to a signed address, which
    // may be refused for anything but GET.
    std::string at = url;
    for (long hop = 0; hop <= kMaxRedirects; ++hop) {
        Transfer transfer;
        impl_->ready(at, transfer);
        curl_easy_setopt(impl_->curl, CURLOPT_NOBODY, 1L);
        const long status = impl_->perform(at, transfer);
        if (status == 404) return {};
        const std::string next = impl_->redirect();
        if (!next.empty() && !transfer.headers.tell_of_linked_file()) {
            require(next.starts_with("https://") || !url.starts_with("https://"), url,
                    ": the server redirects from https to ", next);
            at = next;
            continue;
        }
        if (next.empty() && status != 200) fail_with(status, url);
        return file_of(transfer.headers, url);
    }
    fail(url, ": more than ", kMaxRedirects, " redirects");
}

void HttpClient::get(const std::string& url, uint64_t offset, const std::string& if_range,
                     const std::function<void(uint64_t)>& begin,
                     const std::function<void(std::string_view)>& take) {
    Transfer transfer;
    bool begun = false;
    const auto start = [&] {
        long status = 0;
        curl_easy_getinfo(impl_->curl, CURLINFO_RESPONSE_CODE, &status);
        begun = true;
        if (!if_range.empty()) {
            const bool by_tag = if_range.starts_with('"');
            const std::string now = transfer.headers.get(by_tag ? "etag" : "last-modified");
            if (!now.empty() && !now.starts_with("W/") && now != if_range)
                throw ChangedFile(concat(url, ": the file has changed (got version ", now,
                                         ", expected ", if_range, ")"));
        }
        if (status == 200) return begin(0);
        if (status != 206) fail_with(status, url);
        const std::string range = transfer.headers.get("content-range");
        require(begin_of_part(range) == offset, url,
                ": wrong part of the file (got Content-Range '", range,
                "', expected one from byte ", offset, ")");
        begin(offset);
    };
    transfer.body = [&](std::string_view bytes) {
        if (!begun) start();
        take(bytes);
    };
    impl_->ready(url, transfer);
    curl_easy_setopt(impl_->curl, CURLOPT_FOLLOWLOCATION, 1L);
    curl_easy_setopt(impl_->curl, CURLOPT_FAILONERROR, 1L);
    const std::string range = concat(offset, "-");
    if (offset > 0) curl_easy_setopt(impl_->curl, CURLOPT_RANGE, range.c_str());
    const HeaderList condition(offset > 0 && !if_range.empty() ? "If-Range: " + if_range : "");
    curl_easy_setopt(impl_->curl, CURLOPT_HTTPHEADER, condition.get());
    impl_->perform(url, transfer);
    if (!begun) start();  // an empty file
}

}  // namespace hark::models
