/* Why a store gave no answer. To add a reason, add a line. */

#pragma once

#include <cstddef>
#include <string_view>

namespace sl {

/* One macro, so that a value and its name cannot part. */
#define SL_STORE_ERRORS(X)                                                     \
    X(kDown, "down") /* that was known, and it was not asked */                \
    X(kTimeout, "timeout")                                                     \
    X(kConnection, "connection")                                               \
    X(kUnavailable, "unavailable") /* it says that it cannot serve anyone */   \
    X(kForbidden, "forbidden")                                                 \
    X(kScript, "script") /* any other error that it answered */                \
    X(kNonsense, "nonsense")                                                   \
    X(kOverload, "overload") /* too many were waiting already */               \
    X(kMemory, "memory")     /* no memory left to count or to ask */

#define SL_VALUE(value, name) value,
#define SL_NAME(value, name) name,
#define SL_COUNT(value, name) +1

enum class StoreError : size_t { SL_STORE_ERRORS(SL_VALUE) };

constexpr size_t kStoreErrors = 0 SL_STORE_ERRORS(SL_COUNT);

constexpr std::string_view kStoreErrorNames[] = {SL_STORE_ERRORS(SL_NAME)};

#undef SL_VALUE
#undef SL_NAME
#undef SL_COUNT

}  // namespace sl
