/*
 * ngx_http_sliding_limit_module: one exact, shared rate limit for every nginx
 * of a fleet.
 *
 * A tour, in the order a request takes:
 *
 *   sl_config      the directives, read once at start-up
 *                  (sl_config_redis: the address line; sl_config_util: helpers)
 *   sl_handler     access phase: the whole story of a request on one screen
 *   sl_check       one request's check: which limits, the answer, the outcome
 *   sl_store.h     what a check asks: may this request pass?
 *   redis/         a store that counts in Redis
 *     sl_redis_store       one question = one EVALSHA, its timeout, its answer
 *     sl_redis_connection  opens, sets up, loses and regains a connection
 *     sl_redis_adapter     hiredis on nginx's event loop
 *     sl_redis_script      lua/sliding_window.lua, embedded
 *   core/          pure logic without nginx or Redis, covered by t/unit
 *     sl_decision          a store's numbers -> admitted or not, and what to
 * show sl_key               zone and client key -> name in Redis sl_response
 * the headers on every answer, and the refusal sl_variables   $sliding_limit_*
 *
 * Includes point downwards only: core knows nothing of redis, redis nothing of
 * requests.
 */

#include "sl_config.h"
#include "sl_handler.h"
#include "sl_nginx.h"
#include "sl_response.h"
#include "sl_variables.h"

namespace {

ngx_int_t preconfiguration(ngx_conf_t *cf) noexcept
{
    return sl::add_variables(cf) ? NGX_OK : NGX_ERROR;
}

ngx_int_t postconfiguration(ngx_conf_t *cf) noexcept
{
    if (!sl::check_configuration(cf)) {
        return NGX_ERROR;
    }

    auto *cmcf = static_cast<ngx_http_core_main_conf_t *>(
        ngx_http_conf_get_module_main_conf(cf, ngx_http_core_module));
    auto *handler = static_cast<ngx_http_handler_pt *>(
        ngx_array_push(&cmcf->phases[NGX_HTTP_ACCESS_PHASE].handlers));

    if (handler == nullptr) {
        return NGX_ERROR;
    }

    *handler = sl::access_handler;
    sl::install_header_filter();

    return NGX_OK;
}

/* nullptr if there is no http block or no store in it. */
sl::Store *store_of(ngx_cycle_t *cycle)
{
    auto *mcf = static_cast<sl::MainConf *>(ngx_http_cycle_get_module_main_conf(
        cycle, ngx_http_sliding_limit_module));

    return mcf != nullptr ? mcf->store : nullptr;
}

/* Cache helper processes come here too, and serve nobody. */
bool serves_requests()
{
    return ngx_process == NGX_PROCESS_WORKER
           || ngx_process == NGX_PROCESS_SINGLE;
}

ngx_int_t init_process(ngx_cycle_t *cycle) noexcept
{
    sl::Store *store = store_of(cycle);

    if (store != nullptr && serves_requests()) {
        /* nginx last looked at the clock before it read the configuration */
        ngx_time_update();
        store->start();
    }

    return NGX_OK;
}

/* Before nginx looks for connections that were left open. */
void exit_process(ngx_cycle_t *cycle) noexcept
{
    sl::Store *store = store_of(cycle);

    if (store != nullptr && serves_requests()) {
        store->stop();
    }
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
// clang-format on

}  // namespace

// clang-format off
ngx_module_t ngx_http_sliding_limit_module = {
    NGX_MODULE_V1,
    &module_ctx,                    /* module context */
    sl::commands,                   /* module directives */
    NGX_HTTP_MODULE,                /* module type */
    nullptr,                        /* init master */
    nullptr,                        /* init module */
    init_process,                   /* init process */
    nullptr,                        /* init thread */
    nullptr,                        /* exit thread */
    exit_process,                   /* exit process */
    nullptr,                        /* exit master */
    NGX_MODULE_V1_PADDING
};
// clang-format on
