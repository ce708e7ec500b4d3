#include "base/sl_header.h"

namespace sl {

bool set_header(ngx_http_request_t *r, std::string_view name,
                std::string_view value) noexcept
{
    auto *header =
        static_cast<ngx_table_elt_t *>(ngx_list_push(&r->headers_out.headers));

    if (header == nullptr) {
        return false;
    }

    header->hash = 1;
    header->key = str(name);
    header->lowcase_key = nullptr;
    header->value = str(value);
#if (nginx_version >= 1023000)
    header->next = nullptr;
#endif

    return true;
}

void remove_header(ngx_http_request_t *r, std::string_view name) noexcept
{
    for_each_header(r->headers_out.headers, name,
                    [](ngx_table_elt_t &header) { header.hash = 0; });
}

}  // namespace sl
