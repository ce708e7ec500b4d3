#include "config/sl_config_limit.h"

#include <cstddef>
#include <new>

#include "answer/sl_variables.h"
#include "base/pure/sl_number.h"
#include "base/pure/sl_words.h"
#include "config/pure/sl_value_variables.h"
#include "config/sl_config_util.h"
#include "config/sl_config_zone.h"
#include "store/pure/sl_zone_name.h"

namespace sl {

namespace {

constexpr int64_t kShortestWindow = 100;
constexpr unsigned kDefaultBuckets = 6;
constexpr int64_t kMostBuckets = 100;

/*
 * The parameters of one line as they are given; those that are not are empty. A
 * new one needs a member here, a row in the table and a line in read_limit().
 */
struct LimitParameters {
    ngx_str_t zone;
    ngx_str_t max;
    ngx_str_t window;
    ngx_str_t key;
    ngx_str_t fallback;
    ngx_str_t cost;
    ngx_str_t condition;
    ngx_str_t algorithm;
    ngx_str_t buckets;
    ngx_str_t count;
    ngx_str_t count_status;
    ngx_str_t settle;
    ngx_str_t unit;
    ngx_str_t phase;
    ngx_str_t store;
    ngx_str_t dry_run;
};

const Parameter kLimitParameters[] = {
    {"zone=", offsetof(LimitParameters, zone)},
    {"max=", offsetof(LimitParameters, max)},
    {"window=", offsetof(LimitParameters, window)},
    {"key=", offsetof(LimitParameters, key)},
    {"fallback=", offsetof(LimitParameters, fallback)},
    {"cost=", offsetof(LimitParameters, cost)},
    {"if=", offsetof(LimitParameters, condition)},
    {"algorithm=", offsetof(LimitParameters, algorithm)},
    {"buckets=", offsetof(LimitParameters, buckets)},
    {"count=", offsetof(LimitParameters, count)},
    {"count_status=", offsetof(LimitParameters, count_status)},
    {"settle=", offsetof(LimitParameters, settle)},
    {"unit=", offsetof(LimitParameters, unit)},
    {"phase=", offsetof(LimitParameters, phase)},
    {"store=", offsetof(LimitParameters, store)},
    {"dry_run", offsetof(LimitParameters, dry_run)},
};

/* Compiles `text`; nullptr, with a message, if that cannot be done. */
ngx_http_complex_value_t *new_value(ngx_conf_t *cf, ngx_str_t *text)
{
    auto *value = static_cast<ngx_http_complex_value_t *>(
        ngx_pcalloc(cf->pool, sizeof(ngx_http_complex_value_t)));

    return value != nullptr && compile(cf, text, value) ? value : nullptr;
}

/* Sets nullptr where nothing is given. */
bool set_optional_value(ngx_conf_t *cf, ngx_str_t *text,
                        ngx_http_complex_value_t **to)
{
    *to = text->len ? new_value(cf, text) : nullptr;

    return text->len == 0 || *to != nullptr;
}

bool set_number(ngx_conf_t *cf, const char *name, ngx_str_t *text,
                const char *allowed, Number *to)
{
    if (view(*text).find('$') != std::string_view::npos) {
        to->variable = new_value(cf, text);
        return to->variable != nullptr;
    }

    to->fixed = parse_count(view(*text));

    return to->fixed >= 0 || refuse_value(cf, name, *text, allowed);
}

bool set_algorithm(ngx_conf_t *cf, const ngx_str_t &text, Algorithm *to)
{
    if (text.len == 0 || view(text) == "log") {
        *to = Algorithm::kLog;
    } else if (view(text) == "packed") {
        *to = Algorithm::kPacked;
    } else if (view(text) == "buckets") {
        *to = Algorithm::kBuckets;
    } else {
        return refuse_value(cf, "algorithm", text, "log, packed or buckets");
    }

    return true;
}

bool set_buckets(ngx_conf_t *cf, const ngx_str_t &text, Algorithm algorithm,
                 unsigned *to)
{
    bool has_buckets = algorithm == Algorithm::kBuckets;

    if (!has_buckets && text.len != 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "sliding_limit: buckets=%V needs algorithm=buckets",
                           &text);
        return false;
    }

    ngx_uint_t buckets = has_buckets ? kDefaultBuckets : 0;

    if (text.len != 0
        && !read_number(cf, "buckets", text, {1, kMostBuckets},
                        "a whole number from 1 to 100", &buckets))
    {
        return false;
    }

    *to = static_cast<unsigned>(buckets);
    return true;
}

bool set_count_status(ngx_conf_t *cf, const ngx_str_t &text, StatusList **to)
{
    if (text.len == 0) {
        return true;
    }

    void *memory = ngx_pcalloc(cf->pool, sizeof(StatusList));

    if (memory == nullptr) {
        return false;
    }

    *to = new (memory) StatusList();

    return (*to)->read(view(text))
           || refuse_value(cf, "count_status", text,
                           "statuses from 100 to 599 or classes from 1xx to "
                           "5xx, separated by commas");
}

bool says_no_cost(std::string_view variable)
{
    return is_same_word(variable, "sliding_limit_id")
           || is_same_word(variable, "sliding_limit_addr")
           || (is_of_outcome(variable)
               && !is_same_word(variable, "sliding_limit_usage"));
}

bool set_settle(ngx_conf_t *cf, ngx_str_t *text, ngx_http_complex_value_t **to)
{
    ngx_str_t wrong = str(find_variable(view(*text), says_no_cost));

    if (wrong.len > 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "sliding_limit: \"$%V\" in settle=%V does not say "
                           "what a request has cost, must be for example "
                           "$sliding_limit_usage or $bytes_sent",
                           &wrong, text);
        return false;
    }

    if (text->len != 0 && view(*text).find('$') == std::string_view::npos) {
        return refuse_value(cf, "settle", *text,
                            "a variable that is known when the request ends, "
                            "for example $bytes_sent");
    }

    MainConf *mcf = main_conf(cf);

    mcf->settles = mcf->settles || text->len != 0;

    return set_optional_value(cf, text, to);
}

bool set_condition(ngx_conf_t *cf, ngx_str_t *text,
                   ngx_http_complex_value_t **to)
{
    if (text->len != 0 && view(*text).find('$') == std::string_view::npos) {
        return refuse_value(cf, "if", *text,
                            "a value with a variable; a limit without if= "
                            "always applies");
    }

    return set_optional_value(cf, text, to);
}

bool set_phase(ngx_conf_t *cf, const ngx_str_t &text, ngx_uint_t *to)
{
    bool is_access = text.len == 0 || view(text) == "access";

    *to = is_access ? kAccess : kPrecontent;

    return is_access || view(text) == "precontent"
           || refuse_value(cf, "phase", text, "access or precontent");
}

/* Of refused requests a log keeps as many as max, so it has to know that. */
bool set_count(ngx_conf_t *cf, const LimitParameters &given, Zone *to)
{
    to->counts_refused = given.count.len != 0;

    if (to->counts_refused && view(given.count) != "denied") {
        return refuse_value(cf, "count", given.count, "denied");
    }

    if (to->counts_refused && to->is_log() && to->max == kMaxVaries) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "sliding_limit: zone \"%V\" has count=%V and "
                           "max=%V; with algorithm=log or algorithm=packed "
                           "count=denied needs a max that is a number, so use "
                           "one or algorithm=buckets",
                           &given.zone, &given.count, &given.max);
        return false;
    }

    return true;
}

/* What is allowed in the name of a zone can stand in headers and in JSON. */
bool set_unit(ngx_conf_t *cf, const ngx_str_t &text, ngx_str_t *to)
{
    *to = text.len ? text : str(kDefaultUnit);

    return is_zone_name(view(*to))
           || refuse_value(cf, "unit", text,
                           "1 to 64 letters, digits, \"_\", \".\" or \"-\", "
                           "for example tokens");
}

bool set_zone(ngx_conf_t *cf, const LimitParameters &given, const Number &max,
              Zone **to)
{
    Zone here{};

    if (!is_zone_name(view(given.zone))) {
        return refuse_value(cf, "zone", given.zone,
                            "1 to 64 letters, digits, \"_\", \".\" or \"-\"");
    }

    here.name = given.zone;
    here.store_name = given.store.len ? given.store : str(kDefaultStore);
    here.place = place_of(cf);
    here.max = max.variable == nullptr ? max.fixed : kMaxVaries;

    if (!read_time(cf, "window", given.window,
                   {kShortestWindow, kLongestWindow},
                   "a time from 100ms to 31d", &here.window)
        || !set_algorithm(cf, given.algorithm, &here.algorithm)
        || !set_buckets(cf, given.buckets, here.algorithm, &here.buckets)
        || !set_count(cf, given, &here)
        || !set_unit(cf, given.unit, &here.unit))
    {
        return false;
    }

    *to = find_or_add_zone(cf, here);

    return *to != nullptr;
}

/* $content_length is as good as any other cost: nginx sees to it that the body
 * has that size. */
void warn_if_up_to_client(ngx_conf_t *cf, const ngx_str_t &zone,
                          const char *name, const ngx_str_t &value)
{
    if (can_be_left_out(view(value))
        && !has_variable(view(value), "content_length"))
    {
        ngx_conf_log_error(NGX_LOG_WARN, cf, 0,
                           "sliding_limit: zone \"%V\": a client chooses its "
                           "own %s with what it sends as \"%V\"; use a map "
                           "that allows only what you mean",
                           &zone, name, &value);
    }
}

void warn_of_mistakes(ngx_conf_t *cf, const LimitParameters &given,
                      const Limit &limit)
{
    if (can_be_left_out(view(given.key))
        && (given.fallback.len == 0 || can_be_left_out(view(given.fallback))))
    {
        ngx_conf_log_error(NGX_LOG_WARN, cf, 0,
                           "sliding_limit: zone \"%V\": a client that leaves "
                           "out \"%V\"%s%V%s is not limited; add a fallback "
                           "that it does not send, for example "
                           "fallback=$remote_addr",
                           &given.zone, &given.key,
                           given.fallback.len ? " and \"" : "", &given.fallback,
                           given.fallback.len ? "\"" : "");
    }

    warn_if_up_to_client(cf, given.zone, "max", given.max);
    warn_if_up_to_client(cf, given.zone, "cost", given.cost);
    warn_if_up_to_client(cf, given.zone, "settle", given.settle);

    if (limit.max.variable == nullptr && limit.cost.variable == nullptr
        && limit.cost.fixed > limit.max.fixed && limit.max.fixed > 0)
    {
        ngx_conf_log_error(NGX_LOG_WARN, cf, 0,
                           "sliding_limit: zone \"%V\": cost=%L is more than "
                           "max=%L, so every request is refused",
                           &given.zone, limit.cost.fixed, limit.max.fixed);
    }
}

/* The values that are needed when the request comes. */
struct EarlyValue {
    const char *name;
    const ngx_str_t LimitParameters::*value;
};

constexpr EarlyValue kEarlyValues[] = {
    {"key", &LimitParameters::key},
    {"fallback", &LimitParameters::fallback},
    {"max", &LimitParameters::max},
    {"cost", &LimitParameters::cost},
    {"if", &LimitParameters::condition},
};

/* After an internal redirect there may have been a response already. */
void warn_if_of_response(ngx_conf_t *cf, const ngx_str_t &zone,
                         const char *name, const ngx_str_t &value)
{
    ngx_str_t variable = str(find_variable(view(value), is_of_response));

    if (variable.len > 0) {
        ngx_conf_log_error(NGX_LOG_WARN, cf, 0,
                           "sliding_limit: zone \"%V\": \"$%V\" in %s=%V is "
                           "not known yet when the limit is checked, only when "
                           "the request is answered; count_status= and settle= "
                           "wait for the response",
                           &zone, &variable, name, &value);
    }
}

/* False, with a message, if a value can only be known after the check. */
bool are_known_in_time(ngx_conf_t *cf, const LimitParameters &given)
{
    for (const EarlyValue &early : kEarlyValues) {
        const ngx_str_t &value = given.*early.value;
        ngx_str_t variable = str(find_variable(view(value), is_of_outcome));

        if (variable.len > 0) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "sliding_limit: zone \"%V\": \"$%V\" in %s=%V "
                               "is not known yet when the limit is checked, "
                               "must be a variable of the request",
                               &given.zone, &variable, early.name, &value);
            return false;
        }

        warn_if_of_response(cf, given.zone, early.name, value);
    }

    return true;
}

/* What a refused request would have cost nobody will ever know. */
bool fit_together(ngx_conf_t *cf, const LimitParameters &given)
{
    if (given.settle.len == 0 || given.count.len == 0) {
        return true;
    }

    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                       "sliding_limit: zone \"%V\" has settle=%V and "
                       "count=%V; refused requests are never settled, so "
                       "leave out one of the two",
                       &given.zone, &given.settle, &given.count);

    return false;
}

/* False, with a message, if a log would get more units than it takes. What
 * variables say is looked at with each request. */
bool is_within_bounds(ngx_conf_t *cf, const LimitParameters &given,
                      const Limit &limit)
{
    const Zone &zone = *limit.zone;
    bool varies = limit.max.variable != nullptr;

    if (zone.algorithm == Algorithm::kPacked && !varies
        && limit.max.fixed > kMostPackedMax)
    {
        return refuse_value(cf, "max", given.max,
                            "at most 10000 with algorithm=packed; for more, "
                            "use algorithm=log or algorithm=buckets");
    }

    if (zone.is_log() && limit.cost.variable == nullptr
        && limit.cost.fixed > kMostLogCost)
    {
        return refuse_value(cf, "cost", given.cost,
                            "at most 1000 with algorithm=log or "
                            "algorithm=packed; for more, use "
                            "algorithm=buckets");
    }

    if (zone.is_log() && limit.settle != nullptr
        && (varies || limit.max.fixed > kMostSettledMax))
    {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "sliding_limit: zone \"%V\" has settle=%V and "
                           "max=%V; with algorithm=log or algorithm=packed "
                           "settle= needs a max that is a number of at most "
                           "1000, so use one or algorithm=buckets",
                           &given.zone, &given.settle, &given.max);
        return false;
    }

    return true;
}

bool read_limit(ngx_conf_t *cf, Limit *limit)
{
    LimitParameters given{};

    if (!read_parameters(cf, 1, kLimitParameters, &given)
        || !require_parameters(cf, {{"zone", given.zone},
                                    {"max", given.max},
                                    {"window", given.window},
                                    {"key", given.key}}))
    {
        return false;
    }

    limit->cost.fixed = 1;
    limit->dry_run = given.dry_run.len != 0;

    limit->place = place_of(cf);

    bool ok =
        fit_together(cf, given) && are_known_in_time(cf, given)
        && set_number(
            cf, "max", &given.max,
            "a whole number from 0 to 1000000000000000, or a variable",
            &limit->max)
        && set_zone(cf, given, limit->max, &limit->zone)
        && (given.cost.len == 0
            || set_number(cf, "cost", &given.cost,
                          "a whole number from 0 to 1000000000000000, or a "
                          "variable",
                          &limit->cost))
        && compile(cf, &given.key, &limit->key)
        && set_optional_value(cf, &given.fallback, &limit->fallback)
        && set_condition(cf, &given.condition, &limit->condition)
        && set_count_status(cf, given.count_status, &limit->count_status)
        && set_settle(cf, &given.settle, &limit->settle)
        && set_phase(cf, given.phase, &limit->phase)
        && is_within_bounds(cf, given, *limit);

    if (ok) {
        warn_of_mistakes(cf, given, *limit);
    }

    return ok;
}

/* Whether one more limit may stand beside those of this level. */
bool may_join(ngx_conf_t *cf, const ngx_array_t &limits, const Limit *added)
{
    if (limits.nelts > kMaxLimits) {
        ngx_conf_log_error(
            NGX_LOG_EMERG, cf, 0,
            "sliding_limit: there are more than %uz limits at one "
            "level",
            kMaxLimits);
        return false;
    }

    for (const Limit &limit : elements<Limit>(limits)) {
        if (&limit != added && limit.zone == added->zone
            && limit.condition == nullptr) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "sliding_limit: zone \"%V\" is used twice at "
                               "one level; a request counts once per zone, so "
                               "give the second limit a name of its own, or "
                               "the first one an if=",
                               &added->zone->name);
            return false;
        }
    }

    return true;
}

/* Begins the limits of a level, which replace those of the level above. */
bool begin_level(ngx_conf_t *cf, LocationConf *lcf)
{
    auto **level =
        static_cast<ngx_array_t **>(ngx_array_push(&main_conf(cf)->levels));

    lcf->limits = ngx_array_create(cf->pool, 1, sizeof(Limit));

    if (lcf->limits == nullptr || level == nullptr) {
        return false;
    }

    *level = lcf->limits;

    return true;
}

}  // namespace

bool set_limit(ngx_conf_t *cf, LocationConf *lcf) noexcept
{
    auto words = words_of(cf);
    bool off = words.size() == 2 && view(words[1]) == "off";

    if (lcf->limits != nullptr && (off || lcf->limits->nelts == 0)) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"%V\" directive cannot be \"off\" beside other "
                           "limits of the same level",
                           &words[0]);
        return false;
    }

    if (lcf->limits == nullptr && !begin_level(cf, lcf)) {
        return false;
    }

    if (off) {
        return true;
    }

    auto *limit = static_cast<Limit *>(ngx_array_push(lcf->limits));

    if (limit == nullptr) {
        return false;
    }

    ngx_memzero(limit, sizeof(Limit));

    if (!read_limit(cf, limit) || !may_join(cf, *lcf->limits, limit)) {
        return false;
    }

    lcf->phases |= limit->phase;

    return true;
}

}  // namespace sl
