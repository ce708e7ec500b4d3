#include "answer/sl_variables.h"

#include <algorithm>
#include <iterator>

#include "answer/sl_shown_values.h"
#include "base/pure/sl_words.h"
#include "request/sl_address.h"
#include "request/sl_check.h"
#include "usage/sl_usage.h"

namespace sl {

namespace {

/* The longest value is a UUID. */
constexpr size_t kMaxValue = 40;

ngx_int_t set_text(ngx_http_variable_value_t *v, std::string_view text)
{
    ngx_str_t s = str(text);

    v->data = s.data;
    v->len = static_cast<unsigned>(s.len);
    v->valid = 1;
    v->no_cacheable = 0;
    v->not_found = 0;

    return NGX_OK;
}

ngx_int_t set_nothing(ngx_http_variable_value_t *v)
{
    v->not_found = 1;

    return NGX_OK;
}

/* `format` takes `value`, and `fraction` if it has two places. */
ngx_int_t set_formatted(ngx_http_request_t *r, ngx_http_variable_value_t *v,
                        const char *format, int64_t value, int64_t fraction = 0)
{
    auto *text = static_cast<u_char *>(ngx_pnalloc(r->pool, kMaxValue));

    if (text == nullptr) {
        return NGX_ERROR;
    }

    u_char *end = ngx_snprintf(text, kMaxValue, format, value, fraction);

    return set_text(v, view(text, end));
}

ngx_int_t set_number(ngx_http_request_t *r, ngx_http_variable_value_t *v,
                     int64_t value)
{
    return value < 0 ? set_nothing(v) : set_formatted(r, v, "%L", value);
}

std::string_view outcome_name(Outcome outcome)
{
    switch (outcome) {
    case Outcome::kPassed:
        return "PASSED";
    case Outcome::kRejected:
        return "REJECTED";
    case Outcome::kBanned:
        return "BANNED";
    case Outcome::kRejectedDryRun:
        return "REJECTED_DRY_RUN";
    case Outcome::kExempt:
        return "EXEMPT";
    case Outcome::kFailedOpen:
        return "FAILED_OPEN";
    case Outcome::kFailedClosed:
        return "FAILED_CLOSED";
    case Outcome::kNone:
        break;
    }

    return {};
}

ngx_int_t get_status(ngx_http_request_t *, ngx_http_variable_value_t *v,
                     const Check &check)
{
    return set_text(v, outcome_name(check.outcome()));
}

/* Tells who decided about the limit that is shown. */
ngx_int_t get_store(ngx_http_request_t *, ngx_http_variable_value_t *v,
                    const Check &check)
{
    const AppliedLimit *shown = check.shown();

    return set_text(v, shown != nullptr ? shown->decided_by : "none");
}

ngx_int_t get_zone(ngx_http_request_t *, ngx_http_variable_value_t *v,
                   const Check &check)
{
    return set_text(v, view(check.shown()->limit->zone->name));
}

/* The key as it was evaluated: key=, or fallback= where that was empty. */
ngx_int_t get_key(ngx_http_request_t *, ngx_http_variable_value_t *v,
                  const Check &check)
{
    return set_text(v, view(check.shown()->key));
}

ngx_int_t get_limit(ngx_http_request_t *r, ngx_http_variable_value_t *v,
                    const Check &check)
{
    return set_number(r, v, check.shown()->verdict.max);
}

ngx_int_t get_window(ngx_http_request_t *r, ngx_http_variable_value_t *v,
                     const Check &check)
{
    auto ms = static_cast<int64_t>(check.shown()->limit->zone->window);

    return ms % 1000 ? set_formatted(r, v, "%L.%03L", ms / 1000, ms % 1000)
                     : set_formatted(r, v, "%L", ms / 1000);
}

ngx_int_t get_remaining(ngx_http_request_t *r, ngx_http_variable_value_t *v,
                        const Check &check)
{
    return set_number(r, v, remaining(check.shown()->verdict));
}

ngx_int_t get_reset(ngx_http_request_t *r, ngx_http_variable_value_t *v,
                    const Check &check)
{
    return set_number(r, v, reset_value(r, *check.shown()));
}

ngx_int_t get_retry_after(ngx_http_request_t *r, ngx_http_variable_value_t *v,
                          const Check &check)
{
    return set_number(r, v, retry_after_value(check));
}

ngx_int_t get_time(ngx_http_request_t *r, ngx_http_variable_value_t *v,
                   const Check &check)
{
    int64_t us = check.spent_us();

    return set_formatted(r, v, "%L.%06L", us / 1000000, us % 1000000);
}

using Getter = ngx_int_t (*)(ngx_http_request_t *, ngx_http_variable_value_t *,
                             const Check &);

struct Variable {
    std::string_view name;
    Getter get;

    /* It has no value unless there is a limit to show. */
    bool of_limit;
};

const Variable kVariables[] = {
    {"sliding_limit_status", get_status, false},
    {"sliding_limit_zone", get_zone, true},
    {"sliding_limit_key", get_key, true},
    {"sliding_limit_limit", get_limit, true},
    {"sliding_limit_remaining", get_remaining, true},
    {"sliding_limit_reset", get_reset, true},
    {"sliding_limit_retry_after", get_retry_after, true},
    {"sliding_limit_window", get_window, true},
    {"sliding_limit_store", get_store, false},
    {"sliding_limit_time", get_time, true},
};

/* A check without an outcome is one that $sliding_limit_id made, for its id. */
ngx_int_t get(ngx_http_request_t *r, ngx_http_variable_value_t *v,
              uintptr_t data) noexcept
{
    auto *variable = reinterpret_cast<const Variable *>(data);
    Check *check = Check::find(r);

    if (check == nullptr || check->outcome() == Outcome::kNone
        || (variable->of_limit && check->shown() == nullptr))
    {
        return set_nothing(v);
    }

    return variable->get(r, v, *check);
}

/* Every request has an id, whether it is checked or not. */
ngx_int_t get_id(ngx_http_request_t *r, ngx_http_variable_value_t *v,
                 uintptr_t) noexcept
{
    Check *check = Check::find_or_create(r);

    return check != nullptr ? set_text(v, check->id()) : NGX_ERROR;
}

ngx_int_t get_addr(ngx_http_request_t *r, ngx_http_variable_value_t *v,
                   uintptr_t) noexcept
{
    auto *text =
        static_cast<u_char *>(ngx_pnalloc(r->pool, NGX_SOCKADDR_STRLEN));

    if (text == nullptr) {
        return NGX_ERROR;
    }

    size_t size = write_network(r->connection->sockaddr, r->connection->socklen,
                                location_conf(r)->ipv6_prefix, text);

    return set_text(v, view(text, text + size));
}

/* As long as the response passes, what has been read of it so far. */
ngx_int_t get_usage(ngx_http_request_t *r, ngx_http_variable_value_t *v,
                    uintptr_t) noexcept
{
    return set_number(r, v, usage_of(r));
}

constexpr std::string_view kUsage = "sliding_limit_usage";

bool add(ngx_conf_t *cf, std::string_view name,
         ngx_http_get_variable_pt handler, uintptr_t data)
{
    ngx_str_t text = str(name);
    ngx_http_variable_t *v =
        ngx_http_add_variable(cf, &text, NGX_HTTP_VAR_NOCACHEABLE);

    if (v == nullptr) {
        return false;
    }

    v->get_handler = handler;
    v->data = data;

    return true;
}

}  // namespace

bool add_variables(ngx_conf_t *cf) noexcept
{
    for (const Variable &variable : kVariables) {
        if (!add(cf, variable.name, get,
                 reinterpret_cast<uintptr_t>(&variable))) {
            return false;
        }
    }

    return add(cf, "sliding_limit_id", get_id, 0)
           && add(cf, "sliding_limit_addr", get_addr, 0)
           && add(cf, kUsage, get_usage, 0);
}

bool is_of_outcome(std::string_view name) noexcept
{
    return is_same_word(name, kUsage)
           || std::any_of(std::begin(kVariables), std::end(kVariables),
                          [&](const Variable &variable) {
                              return is_same_word(name, variable.name);
                          });
}

}  // namespace sl
