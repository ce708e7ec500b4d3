#include "store/pure/sl_outage.h"

namespace sl {

void OutageNote::write(std::string_view server,
                       std::string_view reason) noexcept
{
    if (!lock_.lock()) {
        return;
    }

    last_.server_size = server.copy(last_.server_text, Outage::kMaxServer);
    last_.reason_size = reason.copy(last_.reason_text, Outage::kMaxReason);
    lock_.unlock();
}

Outage OutageNote::read() noexcept
{
    Outage copy{};

    if (lock_.lock()) {
        copy = last_;
        lock_.unlock();
    }

    return copy;
}

}  // namespace sl
