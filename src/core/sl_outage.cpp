#include "sl_outage.h"

namespace sl {

void OutageNote::write(std::string_view server, std::string_view reason,
                       int pid) noexcept
{
    if (!lock_.lock(pid)) {
        return;
    }

    last_.server_size = server.copy(last_.server_text, Outage::kMaxServer);
    last_.reason_size = reason.copy(last_.reason_text, Outage::kMaxReason);
    lock_.unlock();
}

Outage OutageNote::read(int pid) noexcept
{
    Outage copy{};

    if (lock_.lock(pid)) {
        copy = last_;
        lock_.unlock();
    }

    return copy;
}

}  // namespace sl
