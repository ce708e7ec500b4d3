/*
 * paced PORT PATH RATE SECONDS: GET requests at a fixed rate, evenly spaced,
 * whatever the server makes of it; prints the latencies in microseconds, one
 * per line. Clients take turns, as a number that is appended to PATH.
 *
 * A request is sent on any connection that is free. If none is, it waits for
 * one, and that counts: a server that stalls cannot slow down the load.
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

using Clock = std::chrono::steady_clock;
using Time = Clock::time_point;

constexpr int kConnections = 32;
constexpr int kClients = 10000;

}  // namespace

int main(int, char **argv)
{
    const int port = atoi(argv[1]);
    const std::string path = argv[2];
    const double gap = 1e9 / atof(argv[3]);
    const long total = static_cast<long>(atof(argv[3]) * atof(argv[4]));

    std::vector<pollfd> sockets;
    std::vector<int> idle;
    std::vector<Time> started(kConnections);
    std::vector<std::string> answers(kConnections);
    std::vector<long> latencies;

    for (int i = 0; i < kConnections; i++) {
        sockets.push_back({connect_to(port), POLLIN, 0});
        idle.push_back(i);
    }

    const Time start = Clock::now();
    auto due = [&](long n) {
        return start
               + std::chrono::nanoseconds(
                   static_cast<long>(gap * static_cast<double>(n)));
    };
    long sent = 0;
    bool waited = false; /* for a free connection */

    while (static_cast<long>(latencies.size()) < total) {
        while (sent < total && !idle.empty() && due(sent) <= Clock::now()) {
            int i = idle.back();
            std::string request = "GET " + path
                                  + std::to_string(sent % kClients)
                                  + " HTTP/1.1\r\nHost: bench\r\n\r\n";

            idle.pop_back();
            /* that we woke up late is not the server's fault */
            started[i] = waited ? due(sent) : Clock::now();
            if (write(sockets[i].fd, request.data(), request.size())
                != static_cast<ssize_t>(request.size()))
            {
                fail("cannot send");
            }
            sent++;
        }

        waited = idle.empty();

        timespec pause = {1, 0};
        if (sent < total && !waited) {
            auto left =
                std::chrono::nanoseconds(due(sent) - Clock::now()).count();
            pause = {0, left > 0 ? left : 0};
        }

        if (ppoll(sockets.data(), sockets.size(), &pause, nullptr) <= 0) {
            continue;
        }

        for (int i = 0; i < kConnections; i++) {
            if (sockets[i].revents == 0) {
                continue;
            }

            char buffer[4096];
            ssize_t n = read(sockets[i].fd, buffer, sizeof buffer);

            if (n <= 0) {
                fail("the server closed a connection");
            }

            answers[i].append(buffer, static_cast<size_t>(n));
            if (!is_whole(answers[i])) {
                continue;
            }
            if (answers[i].compare(0, 13, "HTTP/1.1 200 ") != 0) {
                fail("not every answer was 200");
            }

            latencies.push_back(
                std::chrono::duration_cast<std::chrono::microseconds>(
                    Clock::now() - started[i])
                    .count());
            answers[i].clear();
            idle.push_back(i);
        }
    }

    for (long latency : latencies) {
        printf("%ld\n", latency);
    }
}
