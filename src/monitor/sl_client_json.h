/* What operators are told about clients, as JSON. */

#pragma once

#include "monitor/pure/sl_complaint.h"
#include "monitor/sl_output.h"
#include "request/sl_conf.h"

namespace sl {

/* Where the client stands that has been asked about. */
void write_client(const MainConf &mcf, const Zone &zone, std::string_view key,
                  const ClientAnswer &answer, Output &text) noexcept;

/* Who in the zone has a ban or an override; `keys` says how they are shown. */
void write_rulings(const MainConf &mcf, const Zone &zone, KeysShown keys,
                   const RulingsAnswer &answer, Output &text) noexcept;

/* Why the zone's store gave no answer; where that leaves open whether
 * something has changed, its reason says so. */
void write_no_answer(const Zone &zone, StoreError error,
                     std::string_view reason, Output &text) noexcept;

/* What is wrong with what was asked. */
void write_complaint(const Complaint &complaint, Output &text) noexcept;

/* Answers a request that is not right, and whose body is of no use. Returns
 * what a content handler does. */
ngx_int_t send_complaint(ngx_http_request_t *r, ngx_uint_t status,
                         const Complaint &complaint) noexcept;

}  // namespace sl
