/*
 * Remembered refusals that may have come about only because a store counted a
 * request which is now being taken back.
 *
 * They are void when this object goes. It goes when the store has taken the
 * request back, or never will: whatever is asked after that is decided without
 * the request.
 */

#pragma once

#include "base/sl_clock.h"
#include "store/pure/sl_refusal_marks.h"

namespace sl {

class RefusalsInDoubt {
  public:
    explicit RefusalsInDoubt(RefusalMarks &all) noexcept
        : all_(all), marks_(), count_(0)
    {}

    ~RefusalsInDoubt()
    {
        for (size_t i = 0; i < count_; i++) {
            all_.forget_until(marks_[i], monotonic_us());
        }
    }

    RefusalsInDoubt(const RefusalsInDoubt &) = delete;
    RefusalsInDoubt &operator=(const RefusalsInDoubt &) = delete;

    /* Those by one more zone, of kMaxLimits at most; none with kNoMark. */
    void add(RefusalMark mark) noexcept
    {
        if (mark != kNoMark) {
            marks_[count_++] = mark;
        }
    }

  private:
    RefusalMarks &all_;
    RefusalMark marks_[kMaxLimits];
    size_t count_;
};

}  // namespace sl
