#include "config/sl_config_limit.h"

#include <cstddef>
#include <new>

#include "base/pure/sl_number.h"
#include "base/pure/sl_words.h"
#include "config/sl_config_util.h"
#include "store/pure/sl_zone_name.h"

namespace sl {

namespace {

constexpr ngx_msec_t kShortestWindow = 100;
constexpr unsigned kDefaultBuckets = 6;
constexpr int64_t kMostBuckets = 100;

/* Parameters of one line; empty if absent. */
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
    {"phase=", offsetof(LimitParameters, phase)},
    {"store=", offsetof(LimitParameters, store)},
    {"dry_run", offsetof(LimitParameters, dry_run)},
};

/* `text`, or nullptr with a message if it does not compile. */
ngx_http_complex_value_t *new_value(ngx_conf_t *cf, ngx_str_t *text)
{
    auto *value = static_cast<ngx_http_complex_value_t *>(
        ngx_pcalloc(cf->pool, sizeof(ngx_http_complex_value_t)));

    return value != nullptr && compile(cf, text, value) ? value : nullptr;
}

/* nullptr where nothing is given. */
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

    if (to->fixed < 0) {
        refuse_value(cf, name, text, allowed);
        return false;
    }

    return true;
}

bool set_window(ngx_conf_t *cf, ngx_str_t *text, ngx_msec_t *to)
{
    *to = static_cast<ngx_msec_t>(ngx_parse_time(text, 0));

    if (*to == static_cast<ngx_msec_t>(NGX_ERROR) || *to < kShortestWindow
        || *to > kLongestWindow)
    {
        refuse_value(cf, "window", text, "a time from 100ms to 31d");
        return false;
    }

    return true;
}

bool set_algorithm(ngx_conf_t *cf, const LimitParameters &given, unsigned *to)
{
    bool is_log = given.algorithm.len == 0 || view(given.algorithm) == "log";

    if (!is_log && view(given.algorithm) != "buckets") {
        refuse_value(cf, "algorithm", &given.algorithm, "log or buckets");
        return false;
    }

    if (given.buckets.len == 0) {
        *to = is_log ? 0 : kDefaultBuckets;
        return true;
    }

    if (is_log) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "sliding_limit: buckets=%V needs algorithm=buckets",
                           &given.buckets);
        return false;
    }

    int64_t buckets = parse_count(view(given.buckets));

    if (buckets < 1 || buckets > kMostBuckets) {
        refuse_value(cf, "buckets", &given.buckets,
                     "a whole number from 1 to 100");
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

    if (!(*to)->read(view(text))) {
        refuse_value(cf, "count_status", &text,
                     "statuses from 100 to 599 or classes from 1xx to 5xx, "
                     "separated by commas");
        return false;
    }

    return true;
}

bool set_phase(ngx_conf_t *cf, const ngx_str_t &text, ngx_uint_t *to)
{
    if (text.len == 0 || view(text) == "access") {
        *to = kAccess;
        return true;
    }

    if (view(text) == "precontent") {
        *to = kPrecontent;
        return true;
    }

    refuse_value(cf, "phase", &text, "access or precontent");
    return false;
}

bool set_count(ngx_conf_t *cf, const ngx_str_t &text, bool *counts_refused)
{
    if (text.len != 0 && view(text) != "denied") {
        refuse_value(cf, "count", &text, "denied");
        return false;
    }

    *counts_refused = text.len != 0;
    return true;
}

/* As it is written in the configuration. */
ngx_str_t algorithm_text(unsigned buckets, u_char (&memory)[64])
{
    u_char *end = buckets
                      ? ngx_snprintf(memory, sizeof(memory),
                                     "algorithm=buckets buckets=%ui",
                                     static_cast<ngx_uint_t>(buckets))
                      : ngx_snprintf(memory, sizeof(memory), "algorithm=log");

    return {static_cast<size_t>(end - memory), memory};
}

/* False, with a message, if a zone cannot be used in both ways. */
bool agree(ngx_conf_t *cf, const Zone &here, const Zone &first)
{
    if (here.window != first.window) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "sliding_limit: zone \"%V\" has a window of "
                           "%M ms here, but %M ms in %V:%ui; one zone has "
                           "one count and needs one window",
                           &here.name, here.window, first.window,
                           &first.place.file, first.place.line);
        return false;
    }

    if (here.buckets != first.buckets) {
        u_char memory[2][64];
        ngx_str_t ours = algorithm_text(here.buckets, memory[0]);
        ngx_str_t theirs = algorithm_text(first.buckets, memory[1]);

        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "sliding_limit: zone \"%V\" has %V here, but %V "
                           "in %V:%ui; one zone has one count and needs one "
                           "algorithm",
                           &here.name, &ours, &theirs, &first.place.file,
                           first.place.line);
        return false;
    }

    if (view(here.store_name) != view(first.store_name)) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "sliding_limit: zone \"%V\" has store=%V here, but "
                           "store=%V in %V:%ui; one zone has one count and "
                           "needs one store",
                           &here.name, &here.store_name, &first.store_name,
                           &first.place.file, first.place.line);
        return false;
    }

    return true;
}

/* Finds the zone, or notes it down if this is where it is first used. */
Zone *find_or_add_zone(ngx_conf_t *cf, const Zone &here)
{
    MainConf *mcf = main_conf(cf);
    auto **zones = static_cast<Zone **>(mcf->zones.elts);

    for (ngx_uint_t i = 0; i < mcf->zones.nelts; i++) {
        if (view(zones[i]->name) == view(here.name)) {
            if (zones[i]->max != here.max) {
                zones[i]->max = kMaxVaries;
            }

            return agree(cf, here, *zones[i]) ? zones[i] : nullptr;
        }
    }

    auto *zone = static_cast<Zone *>(ngx_palloc(cf->pool, sizeof(Zone)));
    auto **slot = static_cast<Zone **>(ngx_array_push(&mcf->zones));

    if (zone == nullptr || slot == nullptr) {
        return nullptr;
    }

    *zone = here;
    *slot = zone;

    return zone;
}

bool set_zone(ngx_conf_t *cf, LimitParameters *given, const Number &max,
              Zone **to)
{
    Zone here{};

    if (!is_zone_name(view(given->zone))) {
        refuse_value(cf, "zone", &given->zone,
                     "1 to 64 letters, digits, \"_\", \".\" or \"-\"");
        return false;
    }

    here.name = given->zone;
    here.store_name = given->store.len ? given->store : str(kDefaultStore);
    here.place = place_of(cf);
    here.max = max.variable == nullptr ? max.fixed : kMaxVaries;

    if (!set_window(cf, &given->window, &here.window)
        || !set_algorithm(cf, *given, &here.buckets))
    {
        return false;
    }

    *to = find_or_add_zone(cf, here);

    return *to != nullptr;
}

/*
 * The client alone decides whether this is empty: it is made of nothing but
 * variables that the client sends.
 */
bool is_up_to_client(std::string_view text)
{
    constexpr std::string_view kSent[] = {"cookie_", "arg_", "http_"};
    bool any = false;

    while (!text.empty()) {
        if (text[0] != '$') {
            return false;
        }

        bool braced = text.substr(0, 2) == "${";
        text.remove_prefix(braced ? 2 : 1);

        bool sent = false;

        for (std::string_view prefix : kSent) {
            sent = sent || is_same_word(text.substr(0, prefix.size()), prefix);
        }

        if (!sent) {
            return false;
        }

        text.remove_prefix(variable_name_size(text));

        if (braced && text.substr(0, 1) == "}") {
            text.remove_prefix(1);
        }

        any = true;
    }

    return any;
}

/* Whoever writes the value decides, and the client writes it. */
void warn_if_up_to_client(ngx_conf_t *cf, const ngx_str_t &zone,
                          const char *name, const ngx_str_t &value)
{
    if (is_up_to_client(view(value))) {
        ngx_conf_log_error(NGX_LOG_WARN, cf, 0,
                           "sliding_limit: zone \"%V\": a client chooses its "
                           "own %s with what it sends as \"%V\"; use a map "
                           "that allows only what you mean",
                           &zone, name, &value);
    }
}

void warn(ngx_conf_t *cf, const LimitParameters &given, const Limit &limit)
{
    if (is_up_to_client(view(given.key))
        && (given.fallback.len == 0 || is_up_to_client(view(given.fallback))))
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

    if (limit.max.variable == nullptr && limit.cost.variable == nullptr
        && limit.cost.fixed > limit.max.fixed && limit.max.fixed > 0)
    {
        ngx_conf_log_error(NGX_LOG_WARN, cf, 0,
                           "sliding_limit: zone \"%V\": cost=%L is more than "
                           "max=%L, so every request is refused",
                           &given.zone, limit.cost.fixed, limit.max.fixed);
    }
}

}  // namespace

bool read_limit(ngx_conf_t *cf, Limit *limit) noexcept
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

    bool ok =
        set_number(cf, "max", &given.max,
                   "a whole number of requests from 0 to 2147483647, or a "
                   "variable",
                   &limit->max)
        && set_zone(cf, &given, limit->max, &limit->zone)
        && (given.cost.len == 0
            || set_number(cf, "cost", &given.cost,
                          "a whole number from 0 to 2147483647, or a variable",
                          &limit->cost))
        && compile(cf, &given.key, &limit->key)
        && set_optional_value(cf, &given.fallback, &limit->fallback)
        && set_optional_value(cf, &given.condition, &limit->condition)
        && set_count(cf, given.count, &limit->counts_refused)
        && set_count_status(cf, given.count_status, &limit->count_status)
        && set_phase(cf, given.phase, &limit->phase);

    if (ok) {
        warn(cf, given, *limit);
    }

    return ok;
}

}  // namespace sl
