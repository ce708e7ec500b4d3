/*
 * ngx_http_sliding_limit_module: one exact, shared rate limit for every nginx
 * of a fleet.
 *
 * A tour, in the order a request takes:
 *
 *   sl_config      the directives, read once at start-up (sl_config_limit,
 *                  sl_config_redis, sl_config_tls: the long lines)
 *   sl_handler     the phases: the whole story of a request on one screen
 *   sl_check       one request's check: which limits, the answers, the outcome
 *   sl_terms       a limit's line, its variables evaluated for a request
 *   sl_store.h     what a check asks: may this request pass?
 *   sl_memory_store.h  a store that counts in nginx's shared memory
 *   sl_shared_table  that memory: its counts, and refusals to remember
 *   redis/         a store that counts in Redis
 *     sl_redis_store       one question = one EVALSHA, to the right server
 *     sl_*_routes          which server that is: the only one, or a cluster's
 *     sl_redis_channel     one connection and its calls: sent (sl_redis_batch),
 *                          answered (sl_redis_replies), waiting for a
 *                          connection (sl_redis_backlog)
 *     sl_redis_recovery    its return, by a breaker and a probe
 *     sl_redis_call        a call, and who waits for it
 *     sl_script_call       what the script is told, and says
 *     sl_redis_connection  opens a connection, sets it up, notices its end
 *     sl_redis_locator     where to connect to (sl_sentinel: who knows it)
 *     sl_redis_context     hiredis on nginx's event loop, by sl_redis_adapter
 *     sl_redis_tls         and encrypted
 *     sl_redis_script      lua/sliding_window.lua, embedded
 *   core/          pure logic without nginx or Redis, covered by t/unit
 *     sl_decision          a store's numbers -> what to do and what to show
 *     sl_key               zone and client key -> name in Redis
 *     sl_memory_table      counts and refusals in a piece of shared memory
 *     sl_cluster_map, sl_cluster_slot  what a cluster says about itself
 *     sl_breaker           all workers together know whether a Redis is down
 *                          (sl_outage: and why)
 *     sl_shared_breakers   a breaker for each server
 *   sl_response    the headers on every answer, and the refusal
 *   sl_body        the user's template for the refusal
 *   sl_variables   $sliding_limit_*
 *   sl_metrics     what operators see of all that: counted in shared memory
 *                  (core/sl_metrics, sl_history, sl_top_list, sl_distinct),
 *                  shown by sl_metrics_location as text (sl_metrics_text) or
 *                  as a page (page/)
 *
 * Includes point downwards only: core knows nothing of redis, redis nothing of
 * requests.
 */

#include "answer/sl_response.h"
#include "answer/sl_variables.h"
#include "base/sl_nginx.h"
#include "config/sl_directives.h"
#include "config/sl_link.h"
#include "request/sl_recording.h"
#include "sl_phases.h"

namespace {

ngx_int_t preconfiguration(ngx_conf_t *cf) noexcept
{
    return sl::add_variables(cf) ? NGX_OK : NGX_ERROR;
}

bool add_handler(ngx_conf_t *cf, ngx_uint_t phase, ngx_http_handler_pt function)
{
    auto *cmcf = static_cast<ngx_http_core_main_conf_t *>(
        ngx_http_conf_get_module_main_conf(cf, ngx_http_core_module));
    auto *handler = static_cast<ngx_http_handler_pt *>(
        ngx_array_push(&cmcf->phases[phase].handlers));

    if (handler == nullptr) {
        return false;
    }

    *handler = function;

    return true;
}

ngx_int_t postconfiguration(ngx_conf_t *cf) noexcept
{
    if (!sl::link_configuration(cf)) {
        return NGX_ERROR;
    }

    if (!add_handler(cf, NGX_HTTP_ACCESS_PHASE, sl::access_handler)
        || !add_handler(cf, NGX_HTTP_PRECONTENT_PHASE, sl::precontent_handler)
        || !add_handler(cf, NGX_HTTP_LOG_PHASE, sl::log_handler))
    {
        return NGX_ERROR;
    }

    sl::install_header_filter();

    return NGX_OK;
}

ngx_int_t add_last_filter(ngx_conf_t *) noexcept
{
    sl::install_last_header_filter();

    return NGX_OK;
}

/* Cache helper processes come here too, and serve nobody. */
bool serves_requests()
{
    return ngx_process == NGX_PROCESS_WORKER
           || ngx_process == NGX_PROCESS_SINGLE;
}

/* nullptr if there is nothing to do for it. */
sl::MainConf *used_conf(ngx_cycle_t *cycle)
{
    auto *mcf = static_cast<sl::MainConf *>(ngx_http_cycle_get_module_main_conf(
        cycle, ngx_http_sliding_limit_module));

    /* there may be no http block */
    return mcf != nullptr && mcf->table != nullptr ? mcf : nullptr;
}

template <typename Function>
void for_each_store(sl::MainConf *mcf, Function function)
{
    auto *stores = static_cast<sl::NamedStore *>(mcf->stores.elts);

    for (ngx_uint_t i = 0; i < mcf->stores.nelts; i++) {
        function(stores[i].store);
    }
}

/* The memory and all handlers are there, the workers are not yet. */
ngx_int_t init_module(ngx_cycle_t *cycle) noexcept
{
    sl::MainConf *mcf = used_conf(cycle);

    if (mcf == nullptr) {
        return NGX_OK;
    }

    sl::find_metrics(mcf, cycle->log);

    auto *cmcf = static_cast<ngx_http_core_main_conf_t *>(
        ngx_http_cycle_get_module_main_conf(cycle, ngx_http_core_module));

    if (!sl::put_access_handler_first(cmcf)) {
        ngx_log_error(NGX_LOG_EMERG, cycle->log, 0,
                      "sliding_limit: another module has removed the access "
                      "handler: no request would be limited, do without that "
                      "module");
        return NGX_ERROR;
    }

    return NGX_OK;
}

ngx_int_t init_process(ngx_cycle_t *cycle) noexcept
{
    sl::MainConf *mcf = used_conf(cycle);

    if (mcf == nullptr || !serves_requests()) {
        return NGX_OK;
    }

    /* nginx last looked at the clock before it read the configuration */
    ngx_time_update();

    sl::enter_metrics(mcf);
    for_each_store(mcf, [](sl::Store *store) { store->start(); });

    return NGX_OK;
}

/* Before nginx looks for connections that were left open. */
void exit_process(ngx_cycle_t *cycle) noexcept
{
    sl::MainConf *mcf = used_conf(cycle);

    if (mcf == nullptr || !serves_requests()) {
        return;
    }

    for_each_store(mcf, [](sl::Store *store) { store->stop(); });
    sl::leave_metrics(mcf);
}

// clang-format off
ngx_http_module_t module_ctx = {
    preconfiguration,               /* preconfiguration */
    postconfiguration,              /* postconfiguration */
    sl::create_main_conf,           /* create main configuration */
    nullptr,                        /* init main configuration */
    nullptr,                        /* create server configuration */
    nullptr,                        /* merge server configuration */
    sl::create_location_conf,       /* create location configuration */
    sl::merge_location_conf,        /* merge location configuration */
};

ngx_http_module_t last_filter_module_ctx = {
    nullptr,                        /* preconfiguration */
    add_last_filter,                /* postconfiguration */
    nullptr,                        /* create main configuration */
    nullptr,                        /* init main configuration */
    nullptr,                        /* create server configuration */
    nullptr,                        /* merge server configuration */
    nullptr,                        /* create location configuration */
    nullptr,                        /* merge location configuration */
};
// clang-format on

}  // namespace

// clang-format off
ngx_module_t ngx_http_sliding_limit_module = {
    NGX_MODULE_V1,
    &module_ctx,                    /* module context */
    sl::commands,                   /* module directives */
    NGX_HTTP_MODULE,                /* module type */
    nullptr,                        /* init master */
    init_module,                    /* init module */
    init_process,                   /* init process */
    nullptr,                        /* init thread */
    nullptr,                        /* exit thread */
    exit_process,                   /* exit process */
    nullptr,                        /* exit master */
    NGX_MODULE_V1_PADDING
};

/*
 * A module's place in nginx's list is its filter's place in the chain, so the
 * second filter needs a module of its own; `config` says where.
 */
extern "C" ngx_module_t ngx_http_sliding_limit_last_filter_module;

ngx_module_t ngx_http_sliding_limit_last_filter_module = {
    NGX_MODULE_V1,
    &last_filter_module_ctx,        /* module context */
    nullptr,                        /* module directives */
    NGX_HTTP_MODULE,                /* module type */
    nullptr,                        /* init master */
    nullptr,                        /* init module */
    nullptr,                        /* init process */
    nullptr,                        /* init thread */
    nullptr,                        /* exit thread */
    nullptr,                        /* exit process */
    nullptr,                        /* exit master */
    NGX_MODULE_V1_PADDING
};
// clang-format on
