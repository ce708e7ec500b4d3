#include "request/sl_limit_values.h"

#include "base/pure/sl_escape.h"
#include "base/pure/sl_number.h"

namespace sl {

namespace {

bool evaluate(ngx_http_request_t *r, const ngx_http_complex_value_t &value,
              ngx_str_t *text)
{
    auto *source = const_cast<ngx_http_complex_value_t *>(&value);

    return ngx_http_complex_value(r, source, text) == NGX_OK;
}

/* The value may come from anybody: it is escaped and cut short. */
void log_bad_number(ngx_http_request_t *r, const Limit &limit, const char *what,
                    std::string_view value, const char *allowed, const char *so)
{
    constexpr size_t kMostShown = 64;

    char text[kMostShown * kLongestEscape];
    char *end = escape_log(value.substr(0, kMostShown), text);
    ngx_str_t shown = str({text, static_cast<size_t>(end - text)});

    ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                  "sliding_limit: %s of zone \"%V\" is \"%V%s\", must be %s; "
                  "%s",
                  what, &limit.zone->name, &shown,
                  value.size() > kMostShown ? "..." : "", allowed, so);
}

/* What a number may be at most, and all that is allowed, in words. */
struct Bound {
    int64_t most;
    const char *allowed;
};

Bound bound_of_max(const Zone &zone)
{
    if (zone.algorithm == Algorithm::kPacked) {
        return {kMostPackedMax,
                "a whole number from 0 to 10000 with algorithm=packed, "
                "\"unlimited\" or empty"};
    }

    return {kLargestCount,
            "a whole number from 0 to 1000000000000000, \"unlimited\" or "
            "empty"};
}

Bound bound_of_cost(const Zone &zone)
{
    if (zone.is_log()) {
        return {kMostLogCost, "a whole number from 0 to 1000, or more with "
                              "algorithm=buckets, or empty for 1"};
    }

    return {kLargestCount,
            "a whole number from 0 to 1000000000000000, or empty for 1"};
}

/* `otherwise`, with a line in the log, if it is no such number. */
int64_t read_bounded(ngx_http_request_t *r, const Limit &limit,
                     const char *what, std::string_view value, Bound bound,
                     int64_t otherwise)
{
    int64_t number = parse_count(value);

    if (number >= 0 && number <= bound.most) {
        return number;
    }

    log_bad_number(r, limit, what, value, bound.allowed,
                   "no request passes with it");

    return otherwise;
}

bool read_condition(ngx_http_request_t *r, const Limit &limit, bool *holds)
{
    ngx_str_t text;

    if (limit.condition == nullptr) {
        *holds = true;
        return true;
    }

    if (!evaluate(r, *limit.condition, &text)) {
        return false;
    }

    *holds = text.len != 0 && view(text) != "0";
    return true;
}

/* The key is empty if there is nobody to count. */
bool read_key(ngx_http_request_t *r, const Limit &limit, ngx_str_t *key)
{
    if (!evaluate(r, limit.key, key)) {
        return false;
    }

    return key->len != 0 || limit.fallback == nullptr
           || evaluate(r, *limit.fallback, key);
}

bool read_max(ngx_http_request_t *r, const Limit &limit, LimitValues *values)
{
    ngx_str_t text;

    values->max = limit.max.fixed;

    if (limit.max.variable == nullptr) {
        return true;
    }

    if (!evaluate(r, *limit.max.variable, &text)) {
        return false;
    }

    if (text.len == 0 || view(text) == "unlimited") {
        values->apply = false;
        return true;
    }

    values->max =
        read_bounded(r, limit, "max", view(text), bound_of_max(*limit.zone), 0);

    return true;
}

bool read_cost(ngx_http_request_t *r, const Limit &limit, LimitValues *values)
{
    ngx_str_t text;

    values->cost = limit.cost.fixed;

    if (limit.cost.variable == nullptr) {
        return true;
    }

    if (!evaluate(r, *limit.cost.variable, &text)) {
        return false;
    }

    if (text.len == 0) {
        return true;
    }

    values->cost = read_bounded(r, limit, "cost", view(text),
                                bound_of_cost(*limit.zone), kLargestCount + 1);

    return true;
}

/*
 * Variables of an upstream have a value for each server that nginx asked, as in
 * "0, 155"; those before an internal redirect end with a colon, as in "0 :
 * 155". The last one has sent the answer.
 */
std::string_view last_of_upstreams(std::string_view text)
{
    for (std::string_view separator : {", ", " : "}) {
        size_t at = text.rfind(separator);

        if (at != std::string_view::npos) {
            text.remove_prefix(at + separator.size());
        }
    }

    return text;
}

}  // namespace

bool evaluate_true_cost(ngx_http_request_t *r, const Limit &limit,
                        int64_t *cost) noexcept
{
    ngx_str_t text;

    if (!evaluate(r, *limit.settle, &text) || text.len == 0) {
        return false;
    }

    int64_t number = parse_count(last_of_upstreams(view(text)));

    if (number < 0) {
        log_bad_number(r, limit, "settle", view(text),
                       "a whole number from 0 to 1000000000000000, or empty",
                       "what was reserved stands");
        return false;
    }

    *cost = number;

    return true;
}

bool evaluate_limit(ngx_http_request_t *r, const Limit &limit,
                    LimitValues *values) noexcept
{
    values->apply = false;

    if (!read_condition(r, limit, &values->apply)) {
        return false;
    }

    if (!values->apply) {
        return true;
    }

    if (!read_key(r, limit, &values->key)) {
        return false;
    }

    if (values->key.len == 0) {
        values->apply = false;
        return true;
    }

    return read_max(r, limit, values)
           && (!values->apply || read_cost(r, limit, values));
}

}  // namespace sl
