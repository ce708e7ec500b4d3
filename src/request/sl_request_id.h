/* A request's id: a UUIDv7, made when somebody first wants it. */

#pragma once

#include <string_view>

#include "base/pure/sl_uuid.h"

namespace sl {

class RequestId {
  public:
    std::string_view text() noexcept;

  private:
    bool is_made_ = false;
    char text_[kUuidSize] = {};
};

}  // namespace sl
