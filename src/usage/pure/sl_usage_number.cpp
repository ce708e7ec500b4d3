#include "usage/pure/sl_usage_number.h"

#include <algorithm>

namespace sl {

namespace {

/* The largest usage has one more. */
constexpr int kMostKept = 15;

/* More than all digits that a body may have, so that it does not matter how
 * much more an exponent is. */
constexpr int64_t kLargestExponent = 100000000000000000;

bool is_digit(char ch)
{
    return ch >= '0' && ch <= '9';
}

uint64_t power_of_ten(int64_t exponent)
{
    uint64_t power = 1;

    for (; exponent > 0; exponent--) {
        power *= 10;
    }

    return power;
}

}  // namespace

const char *UsageNumber::feed(const char *at, const char *end) noexcept
{
    while (at != end && take(*at)) {
        at++;
    }

    return at;
}

bool UsageNumber::take(char ch) noexcept
{
    if (is_digit(ch)) {
        return take_digit(ch);
    }

    switch (ch) {
    case '-':
    case '+':
        return take_sign(ch);

    case '.':
        if (part_ != Part::kZero && part_ != Part::kWhole) {
            return false;
        }

        part_ = Part::kPoint;
        return true;

    case 'e':
    case 'E':
        if (!is_complete() || part_ == Part::kExponent) {
            return false;
        }

        part_ = Part::kE;
        return true;

    default:
        return false;
    }
}

bool UsageNumber::take_digit(char ch) noexcept
{
    auto digit = static_cast<unsigned>(ch - '0');

    switch (part_) {
    case Part::kZero:
        return false;

    case Part::kNothing:
    case Part::kMinus:
        if (digit == 0) {
            part_ = Part::kZero;
            return true;
        }

        part_ = Part::kWhole;
        [[fallthrough]];
    case Part::kWhole:
        keep(digit);
        point_++;
        return true;

    case Part::kPoint:
    case Part::kFraction:
        part_ = Part::kFraction;

        if (digit == 0 && kept_ == 0) {
            point_--;
        } else {
            keep(digit);
        }

        return true;

    default:
        part_ = Part::kExponent;
        exponent_ = std::min(exponent_ * 10 + digit, kLargestExponent);
        return true;
    }
}

bool UsageNumber::take_sign(char ch) noexcept
{
    if (part_ == Part::kNothing && ch == '-') {
        part_ = Part::kMinus;
        is_negative_ = true;
        return true;
    }

    if (part_ == Part::kE) {
        part_ = Part::kSign;
        is_exponent_negative_ = ch == '-';
        return true;
    }

    return false;
}

void UsageNumber::keep(unsigned digit) noexcept
{
    if (kept_ == kMostKept) {
        has_more_ = has_more_ || digit != 0;
        return;
    }

    digits_ = digits_ * 10 + digit;
    kept_++;
}

bool UsageNumber::is_complete() const noexcept
{
    return part_ == Part::kZero || part_ == Part::kWhole
           || part_ == Part::kFraction || part_ == Part::kExponent;
}

int64_t UsageNumber::rounded_up() const noexcept
{
    int64_t whole = point_ + (is_exponent_negative_ ? -exponent_ : exponent_);

    if (kept_ == 0) {
        return 0;
    }

    if (is_negative_) {
        return kNoUsage;
    }

    if (whole <= 0) {
        return 1;
    }

    if (whole > kMostKept) {
        return kLargestUsage;
    }

    if (whole >= kept_) {
        return static_cast<int64_t>(digits_ * power_of_ten(whole - kept_))
               + (has_more_ ? 1 : 0);
    }

    uint64_t one = power_of_ten(kept_ - whole);

    return static_cast<int64_t>(digits_ / one)
           + (has_more_ || digits_ % one != 0 ? 1 : 0);
}

}  // namespace sl
