#include "redis/sl_redis_script.h"

#include "base/sl_nginx.h"

namespace sl {

namespace {

/* generated from the files in lua/ by the `config` script */
constexpr std::string_view kText =
#include "sl_script.inc"
    ;

static_assert(kText.size() <= kMaxScript, "the script must be shorter");

constexpr size_t kShaHexSize = 40;

struct Sha {
    u_char hex[kShaHexSize];

    Sha() noexcept
    {
        u_char digest[kShaHexSize / 2];
        ngx_sha1_t sha1;

        ngx_sha1_init(&sha1);
        ngx_sha1_update(&sha1, kText.data(), kText.size());
        ngx_sha1_final(digest, &sha1);
        ngx_hex_dump(hex, digest, sizeof(digest));
    }
};

}  // namespace

std::string_view script_text() noexcept
{
    return kText;
}

std::string_view script_sha() noexcept
{
    static const Sha sha;

    return {reinterpret_cast<const char *>(sha.hex), kShaHexSize};
}

}  // namespace sl
