#include "serve/web/web_server.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>

#include "serve/web/connection.h"

#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/post.hpp>

namespace hark::serve {
namespace {

namespace asio = boost::asio;
using ErrorCode = boost::system::error_code;
using Tcp = asio::ip::tcp;
using Local = asio::local::stream_protocol;

// Asio opens sockets that a program started from here would inherit.
template <class Socket>
void close_on_exec(Socket& socket) {
    ::fcntl(socket.native_handle(), F_SETFD, FD_CLOEXEC);
}

// Removes a socket whose program has ended. Throws Error for anything else at `path`.
void make_way(asio::io_context& io, const std::string& path) {
    struct stat info {};
    if (::lstat(path.c_str(), &info) != 0) return;
    require(S_ISSOCK(info.st_mode), path, ": exists, and is no socket; give another --socket");
    Local::socket probe(io);
    ErrorCode error;
    probe.connect(Local::endpoint(path), error);
    require(error.failed(), path, ": another program listens on it; give another --socket");
    require(error == asio::error::connection_refused, path,
            ": cannot tell whether a program listens on it: ", error.message(),
            "; give another --socket");
    ::unlink(path.c_str());
}

}  // namespace

struct WebServer::Inside {
    asio::io_context io{1};
    std::shared_ptr<WebShared> shared = std::make_shared<WebShared>();
    std::optional<Tcp::acceptor> tcp;
    std::optional<Local::acceptor> local;
    asio::steady_timer drain_timer{io};
    std::string failure;

    // Takes connections of either kind.
    template <class Acceptor>
    asio::awaitable<void> accept(Acceptor& acceptor) {
        while (true) {
            ErrorCode error;
            auto socket =
                co_await acceptor.async_accept(asio::redirect_error(asio::use_awaitable, error));
            if (error) {  // such as no file descriptor left
                asio::steady_timer pause(io, std::chrono::milliseconds(100));
                co_await pause.async_wait(asio::use_awaitable);
                continue;
            }
            close_on_exec(socket);
            auto connection =
                std::make_shared<Connection>(Connection::Socket(std::move(socket)), shared);
            asio::co_spawn(io, Connection::run(std::move(connection)), asio::detached);
        }
    }

    std::string listen_tcp() {
        const WebServerOptions& options = shared->options;
        try {
            Tcp::resolver resolver(io);
            const Tcp::endpoint at =
                *resolver.resolve(options.host, std::to_string(options.port)).begin();
            tcp.emplace(io, at);
            close_on_exec(*tcp);
            return tcp_address();
        } catch (const boost::system::system_error& why) {
            fail("cannot listen on ", options.host, ":", options.port, ": ", why.code().message(),
                 "; give another --port or --host");
        }
    }

    std::string tcp_address() const {
        const Tcp::endpoint bound = tcp->local_endpoint();
        const std::string address = bound.address().to_string();
        const bool is_v6 = bound.address().is_v6();
        return concat("http://", is_v6 ? "[" + address + "]" : address, ":", bound.port());
    }

    std::string listen_passed(const PassedSocket& passed) {
        if (passed.host.empty()) {
            local.emplace(io, Local(), passed.fd);
            return "unix:" + passed.path;
        }
        tcp.emplace(io, passed.is_v6 ? Tcp::v6() : Tcp::v4(), passed.fd);
        return tcp_address();
    }

    std::string listen_local() {
        const std::string& path = shared->options.socket;
        require(path.size() < sizeof(sockaddr_un::sun_path), path,
                ": too long for a socket (at most ", sizeof(sockaddr_un::sun_path) - 1, " bytes)");
        make_way(io, path);
        try {
            const mode_t before = ::umask(0177);  // the user's alone
            const auto restore = std::shared_ptr<void>(nullptr, [&](void*) { ::umask(before); });
            local.emplace(io, Local::endpoint(path));
            close_on_exec(*local);
        } catch (const boost::system::system_error& why) {
            fail("cannot listen on ", path, ": ", why.code().message());
        }
        return "unix:" + path;
    }

    void drain() {
        if (shared->is_draining) return;
        shared->is_draining = true;
        shared->site->drain();
        if (shared->running == 0) return io.stop();
        drain_timer.expires_after(std::chrono::duration_cast<std::chrono::steady_clock::duration>(
            std::chrono::duration<double>(shared->options.drain_seconds)));
        drain_timer.async_wait([this](const ErrorCode& error) {
            if (!error) io.stop();
        });
    }
};

WebServer::WebServer(WebServerOptions options) : inside_(std::make_unique<Inside>()) {
    inside_->shared->options = std::move(options);
    inside_->shared->on_idle = [this] { inside_->io.stop(); };
}

WebServer::~WebServer() {
    inside_->shared->on_idle = [] {};  // connections that are cut off end after it
    const WebServerOptions& options = inside_->shared->options;
    if (inside_->local && !options.passed) ::unlink(options.socket.c_str());
}

std::string WebServer::listen() {
    const WebServerOptions& options = inside_->shared->options;
    if (options.passed) return inside_->listen_passed(*options.passed);
    return options.socket.empty() ? inside_->listen_tcp() : inside_->listen_local();
}

void WebServer::run(WebSite& site) {
    inside_->shared->site = &site;
    if (inside_->tcp)
        asio::co_spawn(inside_->io, inside_->accept(*inside_->tcp), asio::detached);
    else
        asio::co_spawn(inside_->io, inside_->accept(*inside_->local), asio::detached);
    inside_->io.run();
    require(inside_->failure.empty(), inside_->failure);
}

void WebServer::post(std::function<void()> work) { asio::post(inside_->io, std::move(work)); }

void WebServer::post_later(double seconds, std::function<void()> work) {
    post([this, seconds, work = std::move(work)] {
        const auto timer = std::make_shared<asio::steady_timer>(inside_->io, duration_of(seconds));
        timer->async_wait([timer, work](const ErrorCode& error) {
            if (!error) work();
        });
    });
}

void WebServer::drain() {
    post([this] { inside_->drain(); });
}

void WebServer::fail_with(std::string reason) {
    post([this, reason = std::move(reason)] {
        inside_->failure = reason;
        inside_->io.stop();
    });
}

}  // namespace hark::serve
