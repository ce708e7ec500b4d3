/*
 * Why a server is regarded as down, in words, for operators to see: in memory
 * of a fixed size that all workers share. Whoever finds out writes it down, and
 * whoever reads it does not trust the sizes that a killed worker has left.
 */

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/pure/sl_process_lock.h"

namespace sl {

/* Where nothing is known of an outage, this is all zero. */
struct Outage {
    static constexpr size_t kMaxServer = 128;
    static constexpr size_t kMaxReason = 256;

    /* Which server of its store is down; empty if that has only one. */
    std::string_view server() const noexcept
    {
        return {server_text, std::min(server_size, kMaxServer)};
    }

    std::string_view reason() const noexcept
    {
        return {reason_text, std::min(reason_size, kMaxReason)};
    }

    /* How long the outage has lasted. */
    int64_t for_ms;

    char server_text[kMaxServer];
    size_t server_size;
    char reason_text[kMaxReason];
    size_t reason_size;
};

class OutageNote {
  public:
    OutageNote() noexcept : lock_(), last_() { lock_.init(); }

    /* Writes down why a server is down; what is too long is cut off. */
    void write(std::string_view server, std::string_view reason) noexcept;

    /* The last outage that was written; without words if it cannot be read now.
     */
    Outage read() noexcept;

  private:
    ProcessLock lock_;
    Outage last_;
};

}  // namespace sl
