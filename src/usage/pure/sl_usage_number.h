/* A number of JSON, read as it arrives, and rounded up to a whole one. */

#pragma once

#include <cstdint>

namespace sl {

constexpr int64_t kNoUsage = -1;
constexpr int64_t kLargestUsage = 1000000000000000;

/*
 * Decimal, so that nothing is lost: 0.1e1 is 1 and not a little more. However
 * many digits there are, these are kept that the largest usage has before its
 * point; of the others it matters where the point is, and whether all are zero.
 */
class UsageNumber {
  public:
    /* Takes what belongs to the number, which may go on in the next piece if
     * that is all; returns where it ends. */
    const char *feed(const char *at, const char *end) noexcept;

    /* Whether it may end here. */
    bool is_complete() const noexcept;

    /* kNoUsage if it is below zero, and the largest usage if it is above that.
     */
    int64_t rounded_up() const noexcept;

  private:
    /* What was read last. */
    enum class Part : uint8_t {
        kNothing,
        kMinus,
        kZero, /* after which no other digit may stand */
        kWhole,
        kPoint,
        kFraction,
        kE,
        kSign, /* of the exponent */
        kExponent,
    };

    bool take(char ch) noexcept;
    bool take_digit(char ch) noexcept;
    bool take_sign(char ch) noexcept;
    void keep(unsigned digit) noexcept;

    uint64_t digits_ = 0;   /* the first that are kept, without leading zeros */
    int64_t point_ = 0;     /* how far it is behind the first digit kept */
    int64_t exponent_ = 0;  /* without its sign */
    uint8_t kept_ = 0;      /* how many digits */
    bool has_more_ = false; /* some digit that is not kept is not zero */
    bool is_negative_ = false;
    bool is_exponent_negative_ = false;
    Part part_ = Part::kNothing;
};

}  // namespace sl
