#include "redis/network.h"

#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "fuzz.h"

namespace fuzz {

namespace {

Welcome welcome;
bool is_narrow;

/* Numbers of sockets are used again: the newest counts. */
Wire *wire_to(int there)
{
    auto found =
        std::find_if(wires().rbegin(), wires().rend(),
                     [&](const auto &wire) { return wire->there() == there; });

    return found != wires().rend() ? found->get() : nullptr;
}

}  // namespace

std::vector<std::shared_ptr<Wire>> &wires()
{
    static std::vector<std::shared_ptr<Wire>> all;

    return all;
}

void set_welcome(Welcome now)
{
    welcome = now;
}

void set_narrow(bool now)
{
    is_narrow = now;
}

bool has_arrived(int there)
{
    const Wire *wire = wire_to(there);

    return wire != nullptr && wire->welcome() != Welcome::kSilence;
}

int Wire::connect()
{
    if (welcome_ == Welcome::kRefused
        || (is_connecting_ && welcome_ == Welcome::kRefusedLater))
    {
        return ECONNREFUSED;
    }

    return std::exchange(is_connecting_, true) ? EISCONN : EINPROGRESS;
}

bool Wire::receive(std::string *to)
{
    char bytes[16384];

    while (is_open()) {
        ssize_t size = recv(here_, bytes, sizeof(bytes), MSG_DONTWAIT);

        if (size < 0 && errno == EAGAIN) {
            return true;
        }

        if (size <= 0) {
            close();
        } else {
            to->append(bytes, static_cast<size_t>(size));
        }
    }

    return false;
}

size_t Wire::send(const std::string &bytes)
{
    ssize_t size =
        ::send(here_, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);

    return size > 0 ? static_cast<size_t>(size) : 0;
}

void Wire::close()
{
    if (is_open()) {
        ::close(here_);
        here_ = -1;
    }
}

}  // namespace fuzz

/* ---- what hiredis and the module call instead of the C library's ---- */

extern "C" int socket(int, int, int) noexcept
{
    int ends[2];

    if (fuzz::welcome == fuzz::Welcome::kNoSocket) {
        errno = EMFILE;
        return -1;
    }

    check(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);

    if (fuzz::is_narrow) {
        int least = 4096;

        syscall(SYS_setsockopt, ends[1], SOL_SOCKET, SO_SNDBUF, &least,
                sizeof(least));
    }

    fuzz::wires().push_back(
        std::make_shared<fuzz::Wire>(ends[0], ends[1], fuzz::welcome));

    return ends[1];
}

extern "C" int connect(int fd, const sockaddr *, socklen_t)
{
    errno = fuzz::wire_to(fd)->connect();

    return -1;
}

extern "C" int getsockopt(int fd, int, int, void *value, socklen_t *) noexcept
{
    bool is_refused =
        fuzz::wire_to(fd)->welcome() == fuzz::Welcome::kRefusedLater;

    *static_cast<int *>(value) = is_refused ? ECONNREFUSED : 0;

    return 0;
}

/* They are no sockets of TCP, and need none of its settings. */
extern "C" int setsockopt(int, int, int, const void *, socklen_t) noexcept
{
    return 0;
}
