// hark-serve under a service manager: the socket that it is passed, and what it tells.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <filesystem>

#include "tools/hark_serve.h"

using namespace hark::test;

namespace {

// A listening socket, of an address that sockets of the kind are bound to.
template <class Address>
int listener(const Address& at) {
    const int fd = ::socket(reinterpret_cast<const sockaddr&>(at).sa_family, SOCK_STREAM, 0);
    EXPECT_EQ(::bind(fd, reinterpret_cast<const sockaddr*>(&at), sizeof at), 0);
    EXPECT_EQ(::listen(fd, 16), 0);
    return fd;
}

sockaddr_un local_address(const std::string& path) {
    sockaddr_un at = {};
    at.sun_family = AF_UNIX;
    path.copy(at.sun_path, sizeof at.sun_path - 1);
    return at;
}

// Runs the server as a manager does, with the socket as descriptor 3, talks to it at `address`, and
// ends it.
void expect_served(int socket, const std::string& address, const std::string& directory) {
    const std::string notified = directory + "/notify";
    const int manager = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    const sockaddr_un at = local_address(notified);
    ASSERT_EQ(::bind(manager, reinterpret_cast<const sockaddr*>(&at), sizeof at), 0);
    const auto told = [&] {
        char text[64];
        const ssize_t n = ::recv(manager, text, sizeof text, 0);
        return std::string(text, static_cast<size_t>(std::max<ssize_t>(n, 0)));
    };
    const std::string command = "echo $$ > '" + directory +
                                "/pid'; export LISTEN_FDS=1 LISTEN_PID=$$ NOTIFY_SOCKET='" +
                                notified + "'; exec '" + (build_dir() / "bin/hark-serve").string() +
                                "' --threads 1 --model " + kGptDemo + " 3<&" +
                                std::to_string(socket) + " 2> '" + directory + "/err'";
    FILE* const server = ::popen(command.c_str(), "w");
    EXPECT_EQ(told(), "READY=1");
    EXPECT_EQ(TestClient(address).get("/health").status, 200);
    ::kill(std::stoi(read_text(directory + "/pid")), SIGTERM);
    EXPECT_EQ(told(), "STOPPING=1");
    EXPECT_EQ(::pclose(server), 0);
    EXPECT_EQ(read_text(directory + "/err"), "listening on " + address + "\n");
    ::close(manager);
}

}  // namespace

TEST(HarkServeService, ASocketOfTcpIsTaken) {
    const TemporaryDirectory directory;
    sockaddr_in at = {};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int socket = listener(at);
    socklen_t size = sizeof at;
    ::getsockname(socket, reinterpret_cast<sockaddr*>(&at), &size);
    expect_served(socket, "http://127.0.0.1:" + std::to_string(ntohs(at.sin_port)),
                  directory.path().string());
    ::close(socket);
}

TEST(HarkServeService, AUnixSocketIsTakenAndLeftThere) {
    const TemporaryDirectory directory;
    const std::string path = (directory.path() / "socket").string();
    const int socket = listener(local_address(path));
    expect_served(socket, "unix:" + path, directory.path().string());
    EXPECT_TRUE(std::filesystem::exists(path));
    ::close(socket);
}

TEST(HarkServeService, WrongSocketsAreNamed) {
    const auto run = [](const std::string& before, const std::string& redirection) {
        return run_shell(before + "exec hark-serve --model " + kGptDemo + " " + redirection);
    };
    const std::string passed = "export LISTEN_FDS=1 LISTEN_PID=$$; ";
    expect_fails(run(passed, "3< /dev/null"), 1,
                 "descriptor 3 is no stream socket that takes connections");
    expect_fails(run("export LISTEN_FDS=2 LISTEN_PID=$$; ", ""), 1, "expected one socket, got 2");
    // Another process's: nothing was passed.
    expect_fails(run("export LISTEN_FDS=2 LISTEN_PID=1; ", "--host 192.0.2.1"), 1,
                 "cannot listen on 192.0.2.1");
}

// A program that the server starts must not have the clients' connections.
TEST(HarkServeService, SocketsAreClosedOnExec) {
    Served server(kServedDemo);
    TestClient client(server.address());
    client.send(request_text("GET", "/health", "", {}));
    EXPECT_EQ(client.receive().status, 200);
    const std::filesystem::path process = "/proc/" + std::to_string(server.tool().pid());
    int sockets = 0;
    for (const auto& entry : std::filesystem::directory_iterator(process / "fd")) {
        std::error_code closed;
        const std::string what = std::filesystem::read_symlink(entry, closed);
        if (!what.starts_with("socket:")) continue;
        const std::string info = read_text(process / "fdinfo" / entry.path().filename());
        const std::string flags = info.substr(info.find("flags:") + 6);
        EXPECT_TRUE(std::stol(flags, nullptr, 8) & O_CLOEXEC) << what << "\n" << info;
        ++sockets;
    }
    EXPECT_GE(sockets, 2);
}
