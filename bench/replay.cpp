/*
 * replay PORT: GET requests at the moments that lines on standard input name,
 * "MICROSECONDS PATH", in order, by the clock of the day. Prints for each, in
 * the order of the answers: when it was sent, when its answer was there, the
 * status and the path.
 *
 * There are few connections, so that of a burst few requests are under way at
 * a time: the time from sending to the answer is what remains unknown about
 * the moment in which the server decided. What waits for a connection is sent
 * later than named, and the time that is printed says so.
 */

#include <poll.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "loopback.h"

namespace {

constexpr int kConnections = 8;

long now_us()
{
    return std::chrono::duration_cast<std::chrono::microseconds>(
               std::chrono::system_clock::now().time_since_epoch())
        .count();
}

struct Request {
    long due;
    std::string path;
};

struct Connection {
    Request request;
    long sent;
    std::string answer;
};

std::vector<Request> read_requests()
{
    std::vector<Request> requests;
    char path[256];
    long due;

    while (scanf("%ld %255s", &due, path) == 2) {
        requests.push_back({due, path});
    }

    return requests;
}

void send(int fd, Connection &connection, const Request &request)
{
    std::string text =
        "GET " + request.path + " HTTP/1.1\r\nHost: bench\r\n\r\n";

    connection = {request, now_us(), ""};
    if (write(fd, text.data(), text.size())
        != static_cast<ssize_t>(text.size())) {
        fail("cannot send");
    }
}

/* Whether the answer is there. */
bool receive(int fd, Connection &connection)
{
    char buffer[4096];
    ssize_t n = read(fd, buffer, sizeof buffer);

    if (n <= 0) {
        fail("the server closed a connection");
    }

    connection.answer.append(buffer, static_cast<size_t>(n));
    if (!is_whole(connection.answer)) {
        return false;
    }

    printf("%ld %ld %.3s %s\n", connection.sent, now_us(),
           &connection.answer[9], connection.request.path.c_str());
    return true;
}

}  // namespace

int main(int, char **argv)
{
    const std::vector<Request> requests = read_requests();
    std::vector<Connection> connections(kConnections);
    std::vector<pollfd> sockets;
    std::vector<int> idle;

    for (int i = 0; i < kConnections; i++) {
        sockets.push_back({connect_to(atoi(argv[1])), POLLIN, 0});
        idle.push_back(i);
    }

    size_t sent = 0;
    size_t answered = 0;

    while (answered < requests.size()) {
        while (sent < requests.size() && !idle.empty()
               && requests[sent].due <= now_us())
        {
            int i = idle.back();

            idle.pop_back();
            send(sockets[i].fd, connections[i], requests[sent++]);
        }

        timespec pause = {1, 0};
        if (sent < requests.size() && !idle.empty()) {
            long left = requests[sent].due - now_us();
            pause = {left > 0 ? left / 1000000 : 0,
                     left > 0 ? left % 1000000 * 1000 : 0};
        }

        if (ppoll(sockets.data(), sockets.size(), &pause, nullptr) <= 0) {
            continue;
        }

        for (int i = 0; i < kConnections; i++) {
            if (sockets[i].revents != 0
                && receive(sockets[i].fd, connections[i])) {
                idle.push_back(i);
                answered++;
            }
        }
    }
}
