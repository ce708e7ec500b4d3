/*
 * Calls a method of its owner later: after a time, or at the end of this turn
 * of the event loop. Ends with its owner.
 *
 *   Wakeup retry_ = Wakeup::calling<&Channel::retry>(this,
 * Wakeup::kCancelable);
 */

#pragma once

#include "base/sl_nginx.h"

namespace sl {

class Wakeup {
  public:
    enum Kind {
        /* A worker that is to exit waits for it. */
        kNeeded,

        /* A worker that has nothing else to do exits without it. */
        kCancelable,
    };

    template <auto kMethod, typename Owner>
    static Wakeup calling(Owner *owner, Kind kind) noexcept
    {
        return Wakeup(owner, kind, [](ngx_event_t *event) noexcept {
            (static_cast<Owner *>(event->data)->*kMethod)();
        });
    }

    ~Wakeup() { cancel(); }

    Wakeup(const Wakeup &) = delete;
    Wakeup &operator=(const Wakeup &) = delete;

    /* Instead of the time that was set before, if one was. */
    void after(ngx_msec_t ms) noexcept
    {
        /* nginx would keep it if the two are close to each other */
        if (event_.timer_set) {
            ngx_del_timer(&event_);
        }

        event_.log = ngx_cycle->log;
        ngx_add_timer(&event_, ms);
    }

    void at_end_of_turn() noexcept
    {
        event_.log = ngx_cycle->log;

        if (!event_.posted) {
            ngx_post_event(&event_, &ngx_posted_events);
        }
    }

    void cancel() noexcept
    {
        if (event_.timer_set) {
            ngx_del_timer(&event_);
        }

        if (event_.posted) {
            ngx_delete_posted_event(&event_);
        }
    }

    /* It is waiting for its time. */
    bool is_set() const noexcept { return event_.timer_set; }

    /* Until its time; meaningless unless it is set, and negative if overdue. */
    ngx_msec_int_t left() const noexcept
    {
        return static_cast<ngx_msec_int_t>(event_.timer.key - ngx_current_msec);
    }

  private:
    Wakeup(void *owner, Kind kind, ngx_event_handler_pt handler) noexcept
        : event_()
    {
        event_.handler = handler;
        event_.data = owner;
        event_.cancelable = kind == kCancelable;
    }

    ngx_event_t event_;
};

}  // namespace sl
