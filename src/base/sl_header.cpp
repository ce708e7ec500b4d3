#include "base/sl_header.h"

#include "base/pure/sl_words.h"

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
    ngx_list_part_t *part = &r->headers_out.headers.part;

    for (; part != nullptr; part = part->next) {
        auto *header = static_cast<ngx_table_elt_t *>(part->elts);

        for (ngx_uint_t i = 0; i < part->nelts; i++) {
            if (is_same_word(view(header[i].key), name)) {
                header[i].hash = 0;
            }
        }
    }
}

}  // namespace sl
