/* Headers of requests and of the answers to them. */

#pragma once

#include "base/pure/sl_words.h"
#include "base/sl_nginx.h"

namespace sl {

/* Adds a header of the answer; false: out of memory. Name and value must live
 * as long as `r`. */
bool set_header(ngx_http_request_t *r, std::string_view name,
                std::string_view value) noexcept;

/* Takes out what the application or an earlier stage has set. */
void remove_header(ngx_http_request_t *r, std::string_view name) noexcept;

/* Calls function(ngx_table_elt_t &) for each header of this name. */
template <typename Function>
void for_each_header(ngx_list_t &headers, std::string_view name,
                     Function function)
{
    for (ngx_list_part_t *part = &headers.part; part != nullptr;
         part = part->next) {
        auto *header = static_cast<ngx_table_elt_t *>(part->elts);

        for (ngx_uint_t i = 0; i < part->nelts; i++) {
            if (is_same_word(view(header[i].key), name)) {
                function(header[i]);
            }
        }
    }
}

}  // namespace sl
