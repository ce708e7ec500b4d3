#include "base/sl_random.h"

#include <sys/random.h>

#include <cstring>

#include "base/sl_nginx.h"

namespace sl {

namespace {

/* The kernel is asked for many bytes at once: a call for each id would cost. */
struct Reserve {
    uint8_t bytes[4096];
    size_t used;
    ngx_pid_t owner;
};

Reserve reserve;

void refill() noexcept
{
    for (size_t have = 0; have < sizeof(reserve.bytes);) {
        ssize_t n =
            getrandom(reserve.bytes + have, sizeof(reserve.bytes) - have, 0);

        if (n > 0) {
            have += static_cast<size_t>(n);

        } else if (ngx_errno != NGX_EINTR) {
            /* this kernel has no such call: nginx seeds its own per worker */
            reserve.bytes[have++] = static_cast<uint8_t>(ngx_random());
        }
    }

    reserve.used = 0;
    reserve.owner = ngx_pid;
}

}  // namespace

void random_bytes(uint8_t *to, size_t size) noexcept
{
    /* what a parent process left over must not be used by two children */
    if (reserve.owner != ngx_pid || size > sizeof(reserve.bytes) - reserve.used)
    {
        refill();
    }

    memcpy(to, reserve.bytes + reserve.used, size);
    reserve.used += size;
}

}  // namespace sl
