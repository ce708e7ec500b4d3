/*
 * What the clients of this directory have in common: connections to a server
 * on loopback, and where its answers end.
 */

#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cstdio>
#include <cstdlib>
#include <string>

[[noreturn]] inline void fail(const char *what)
{
    fprintf(stderr, "bench: %s\n", what);
    exit(1);
}

inline int connect_to(int port)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    int on = 1;
    sockaddr_in address = {};

    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);

    if (connect(fd, reinterpret_cast<sockaddr *>(&address), sizeof address)
        != 0) {
        fail("cannot connect");
    }

    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);

    return fd;
}

/* All answers of these servers are short and end in one body of known length.
 */
inline bool is_whole(const std::string &answer)
{
    size_t head = answer.find("\r\n\r\n");
    size_t length = answer.find("Content-Length: ");

    return head != std::string::npos && length < head
           && answer.size()
                  >= head + 4 + strtoul(&answer[length + 16], nullptr, 10);
}
