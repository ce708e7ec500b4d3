/*
 * A request of an operator's from when it is understood until it is answered:
 * its body is read, the store is asked, and the request waits for the answer.
 *
 * It lies in the request's pool, and ends with the request, which may be at any
 * time. The store may answer from inside hiredis, where no request must be
 * ended: so the answer is written down then, and sent at the end of the turn.
 */

#pragma once

#include "base/sl_wakeup.h"
#include "monitor/sl_change_report.h"
#include "monitor/sl_output.h"
#include "monitor/sl_small_body.h"

namespace sl {

struct OperatorQuestion {
    const Zone *zone = nullptr;

    /* What is to be done about this client; for a PUT its body says that. */
    std::string_view key;
    Intervention intervention;

    /* Or who has a ban or an override, from `cursor` on. */
    bool is_list = false;
    std::string_view cursor;
};

class OperatorRequest final : public OperatorReceiver {
  public:
    /* Returns what a content handler does. The question's texts must last as
     * long as the request. */
    static ngx_int_t begin(ngx_http_request_t *r,
                           const OperatorQuestion &question) noexcept;

    void receive(const ClientAnswer &answer) noexcept override;
    void receive(const RulingsAnswer &answer) noexcept override;

  private:
    OperatorRequest(ngx_http_request_t *r,
                    const OperatorQuestion &question) noexcept;

    static OperatorRequest *create(ngx_http_request_t *r,
                                   const OperatorQuestion &question) noexcept;
    static OperatorRequest *find(ngx_http_request_t *r) noexcept;
    static void detach(void *data) noexcept;

    ngx_int_t begin_body() noexcept;
    static void continue_body(ngx_http_request_t *r) noexcept;
    void read_body() noexcept;
    void read_intervention() noexcept;

    void ask() noexcept;
    void give_up(StoreError error, std::string_view reason) noexcept;
    void answer_is_there() noexcept;
    void wake() noexcept;

    bool is_change() const noexcept;
    Change change() const noexcept;

    ngx_http_request_t *r_;
    OperatorQuestion question_;
    SmallBody *body_; /* nullptr: there is none to be read */

    /* nullptr: nobody is asked, or there is an answer */
    PendingQuestion *pending_;

    ngx_uint_t status_;
    Output text_;
    Wakeup wakeup_;
};

}  // namespace sl
