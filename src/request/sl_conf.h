/*
 * What the configuration says: read at start-up by config/, merged and linked,
 * and from then on only read.
 *
 * A limit is met in five forms. Limit is its line in the configuration,
 * LimitValues what that line's variables say for a request, AppliedLimit all
 * that becomes of it in that request. LimitQuery is what a store is told of it,
 * and ScriptLimit how that is written for Redis.
 */

#pragma once

#include "base/sl_nginx.h"
#include "request/pure/sl_status_list.h"
#include "store/sl_deny_cache.h"
#include "store/sl_memory_store.h"
#include "store/sl_shared_memory.h"
#include "store/sl_store.h"

namespace sl {

struct Body;
struct RedisSettings;
struct UsageSettings;
class Recorder;

/* Where in the configuration something stood. */
struct Place {
    ngx_str_t file;
    ngx_uint_t line;
};

/* One `sliding_limit_redis` line. */
struct NamedStore {
    ngx_str_t name;
    Store *store;
    RedisSettings *settings;
    Place place;
};

/* The name of a line without name=, and where limits without store= go. */
constexpr std::string_view kDefaultStore = "default";

/* The store in this nginx itself: also where those limits go if there is no
 * line that could be the default. */
constexpr std::string_view kMemoryStore = "memory";

/* What limits count unless they have a unit=. */
constexpr std::string_view kDefaultUnit = "requests";

constexpr ngx_msec_t kLongestWindow = 31UL * 24 * 60 * 60 * 1000;

constexpr int64_t kMaxVaries = -1;

/* A log has an entry for each unit, so what it takes is bounded: the max of a
 * packed one, a cost, and the max of a limit that is settled. */
constexpr int64_t kMostPackedMax = 10000;
constexpr int64_t kMostLogCost = 1000;
constexpr int64_t kMostSettledMax = 1000;

/* What all limits of one name share, and where that name stood first. */
struct Zone {
    ngx_str_t name;
    ngx_msec_t window;
    Algorithm algorithm;
    unsigned buckets; /* 0 unless algorithm=buckets */
    bool counts_refused;
    int64_t max; /* kMaxVaries: a variable says it, or lines differ */
    ngx_str_t unit;
    ngx_str_t store_name;
    Store *store; /* set when all is read */
    Place place;

    /* What the zone has counted may be given back or forgotten early. */
    bool is_revised;

    /* For the deny cache. kNoMark: it remembers no refusals by the zone. */
    RefusalMark refusal_mark;

    /* Somewhere the zone stands beside another one. */
    bool has_company;

    /* Some of its limits have settle=, so metrics show what came of that. */
    bool settles;

    size_t index; /* in MainConf::zones */

    /* It has an entry for each unit that it has counted, packed or not. */
    bool is_log() const noexcept { return algorithm != Algorithm::kBuckets; }
};

/* A whole number that stands there, or what a variable says. */
struct Number {
    int64_t fixed;
    ngx_http_complex_value_t *variable; /* nullptr: fixed */
};

enum Phase : ngx_uint_t { kAccess = 1, kPrecontent = 2 };

/* One `sliding_limit` line. */
struct Limit {
    Zone *zone;
    Number max;
    Number cost;
    ngx_http_complex_value_t key;
    ngx_http_complex_value_t *fallback;  /* nullptr: none */
    ngx_http_complex_value_t *condition; /* if=; nullptr: none */
    StatusList *count_status;            /* nullptr: all count */
    ngx_http_complex_value_t *settle;    /* nullptr: the cost is final */
    ngx_uint_t phase;
    bool dry_run;
    Place place;

    /* Somewhere where it applies sliding_limit_usage reads responses. */
    bool has_usage;

    /*
     * For the deny cache. kNoMark, unless a refusal holds until the moment that
     * it names, and those after it change nothing: only then it can be
     * remembered instead of asking again.
     */
    RefusalMark refusal_mark;
};

enum OnError : ngx_uint_t { kPass, kDeny, kLocal };

/* How sliding_limit_metrics shows clients. */
enum KeysShown : ngx_uint_t { kMaskedKeys = 1, kPlainKeys, kNoKeys };

/* A `sliding_limit_metrics` line. */
struct MetricsSettings {
    /* KeysShown; 0: there is no such line. */
    ngx_uint_t keys_shown;

    Place place;

    /* Operators may change something there. */
    bool is_admin;

    /* Under which names: those of the server, and others, which are in lower
     * case and separated by commas. */
    Elements<ngx_http_server_name_t> server_names;
    ngx_str_t hosts;
};

enum ResetFormat : ngx_uint_t { kDelta, kEpoch };

/* Bits of LocationConf::headers. */
enum HeaderStyle : ngx_uint_t {
    kNoHeaders = 1,
    kXHeaders = 2,
    kIetfHeaders = 4
};

/* A location with `sliding_limit_metrics admin`. */
struct AdminLocation {
    ngx_http_conf_ctx_t *ctx;
    Place place;

    /* Nothing in the configuration restricts who may make changes there. */
    bool is_open;
};

struct MainConf {
    ngx_array_t zones;  /* Zone * */
    ngx_array_t stores; /* NamedStore */
    ngx_array_t admins; /* AdminLocation */
    ngx_array_t levels; /* ngx_array_t * of Limit: those that stand together */
    size_t memory_size;

    bool settles;     /* there is a limit whose costs are settled */
    bool reads_usage; /* of responses, somewhere */

    /* Set when all is read; nullptr if there are no limits to count in. */
    SharedMemory *table;
    MemoryStore *memory;
    DenyCache *deny_cache;
    Recorder *recorder;

    /* The Content-Security-Policy of sliding_limit_metrics' page; empty: there
     * is no such page. */
    ngx_str_t page_policy;

    /* For the metrics: what the module was built with. */
    std::string_view hiredis_version;
    bool has_tls;
};

struct LocationConf {
    /*
     * Limit. `sliding_limit off` is an empty array. nullptr: the location has
     * no limits of its own, so it has those of the level above.
     */
    ngx_array_t *limits;

    /* The phases in which there is a limit to check: Phase, or'ed. */
    ngx_uint_t phases;

    ngx_msec_t deny_cache; /* 0: off */
    ngx_uint_t on_error;
    ngx_uint_t status;
    ngx_uint_t log_level;
    ngx_uint_t reset;
    ngx_uint_t headers;
    ngx_uint_t ipv6_prefix;
    ngx_flag_t dry_run;
    const Body *body;

    /* What of responses is read; nullptr: nothing. */
    UsageSettings *usage;

    MetricsSettings metrics;

    /* It has "if" blocks, which may refuse requests. */
    bool has_if;
};

/* The configuration while it is read. */
inline MainConf *main_conf(ngx_conf_t *cf) noexcept
{
    return static_cast<MainConf *>(
        ngx_http_conf_get_module_main_conf(cf, ngx_http_sliding_limit_module));
}

/* The configuration as requests see it. */
inline const MainConf *main_conf(ngx_http_request_t *r) noexcept
{
    return static_cast<const MainConf *>(
        ngx_http_get_module_main_conf(r, ngx_http_sliding_limit_module));
}

inline const LocationConf *location_conf(ngx_http_request_t *r) noexcept
{
    return static_cast<const LocationConf *>(
        ngx_http_get_module_loc_conf(r, ngx_http_sliding_limit_module));
}

}  // namespace sl
