#include "request/sl_request_id.h"

#include "base/sl_nginx.h"
#include "base/sl_random.h"

namespace sl {

std::string_view RequestId::text() noexcept
{
    if (!is_made_) {
        uint8_t random[kUuidRandomBytes];
        random_bytes(random, sizeof(random));

        uuid_v7(wall_clock_ms(), random, text_);
        is_made_ = true;
    }

    return {text_, kUuidSize};
}

}  // namespace sl
