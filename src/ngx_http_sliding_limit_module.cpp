/*
 * ngx_http_sliding_limit_module: one exact, shared rate limit for every nginx
 * of a fleet.
 *
 * A tour, in the order a request takes. Folders say what something is about;
 * what stands in a folder "pure" has neither nginx nor Redis, and is covered by
 * t/unit.
 *
 *   config/          the directives, read and linked once at start-up
 *                    (request/sl_conf.h: what they come to)
 *   sl_phases        all that a request passes by: phases, filters, the log
 *   request/         one request
 *     sl_check             which limits apply, the questions, the outcome
 *     sl_limit_values      a limit's line, its variables evaluated
 *     sl_applied_limit     a limit, from these values to its answer
 *     sl_question          one question to a store, and what came of it
 *     sl_waiting           until the answer is there
 *     sl_settling          what was counted, and is not to count, or costs
 *                          something else after all
 *     sl_report            what the metrics hear of it (sl_recording: where)
 *     pure/                grouping limits into questions, verdicts, outcomes
 *   store/           who decides: may this request pass?
 *     sl_store.h           what a check asks: the interface
 *     sl_memory_store      a store that counts in nginx's shared memory
 *     sl_deny_cache        refusals by other stores, remembered there, too
 *     sl_shared_memory     that memory (pure/sl_memory_table: its contents)
 *   redis/           a store that counts in Redis
 *     sl_redis_store       one question = one EVALSHA, to the right server
 *     sl_*_routes          which server that is: the only one, or a cluster's
 *     sl_redis_channel     one connection and its calls: sent (sl_redis_batch),
 *                          answered (sl_redis_replies), waiting for a
 *                          connection (sl_redis_backlog)
 *     sl_redis_recovery    its return, by a breaker and a probe
 *     sl_redis_call        a call, and who waits for it
 *     sl_script_call       what the script is told, and says
 *     sl_redis_connection  opens a connection, notices its end
 *                          (sl_connection_setup: its first commands,
 *                          sl_sign_of_life: that it is never silent for long)
 *     sl_redis_locator     where to connect to (sl_sentinel: who knows it)
 *     sl_redis_context     hiredis on nginx's event loop, by sl_redis_adapter
 *     sl_redis_tls         and encrypted
 *     sl_redis_script      lua/script.lua and what it includes, embedded
 *   answer/          what the client is told
 *     sl_headers           rate-limit headers on every answer
 *     sl_refusal, sl_body  the refusal, and its body
 *     sl_variables         $sliding_limit_*, for the configuration and the log
 *   usage/           what a response says about its own cost, read as it passes
 *   metrics/         what operators see of all that, counted in shared memory
 *   monitor/         and shown: as text, as JSON or as a page (page/)
 *   base/            what everything uses
 *
 * Includes point one way: scripts/check-includes knows which. More in
 * docs/architecture.md.
 */

#include "answer/sl_variables.h"
#include "base/sl_nginx.h"
#include "config/sl_defaults.h"
#include "config/sl_directives.h"
#include "config/sl_link.h"
#include "config/sl_open_admin.h"
#include "request/sl_recording.h"
#include "sl_phases.h"

namespace {

ngx_int_t preconfiguration(ngx_conf_t *cf) noexcept
{
    return sl::add_variables(cf) ? NGX_OK : NGX_ERROR;
}

ngx_int_t postconfiguration(ngx_conf_t *cf) noexcept
{
    if (!sl::link_configuration(cf) || !sl::install_handlers(cf)) {
        return NGX_ERROR;
    }

    sl::install_header_filter();

    const sl::MainConf &mcf = *sl::main_conf(cf);

    if (mcf.reads_usage || mcf.settles) {
        sl::install_body_filter();
    }

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
const sl::MainConf *used_conf(ngx_cycle_t *cycle)
{
    auto *mcf =
        static_cast<const sl::MainConf *>(ngx_http_cycle_get_module_main_conf(
            cycle, ngx_http_sliding_limit_module));

    /* there may be no http block */
    return mcf != nullptr && mcf->table != nullptr ? mcf : nullptr;
}

template <typename Function>
void for_each_store(const sl::MainConf &mcf, Function function)
{
    for (auto &named : sl::elements<sl::NamedStore>(mcf.stores)) {
        function(named.store);
    }
}

/* The memory and all handlers are there, the workers are not yet. */
ngx_int_t init_module(ngx_cycle_t *cycle) noexcept
{
    const sl::MainConf *mcf = used_conf(cycle);

    if (mcf == nullptr) {
        return NGX_OK;
    }

    mcf->recorder->find_places(*mcf, cycle->log);
    sl::warn_of_open_admins(cycle, *mcf);

    auto *cmcf = static_cast<ngx_http_core_main_conf_t *>(
        ngx_http_cycle_get_module_main_conf(cycle, ngx_http_core_module));

    const char *missing;

    if (!sl::put_handlers_first(cmcf, &missing)) {
        ngx_log_error(NGX_LOG_EMERG, cycle->log, 0,
                      "sliding_limit: another module has removed the %s "
                      "handler, so no request would be limited in that phase; "
                      "remove that module from the configuration",
                      missing);
        return NGX_ERROR;
    }

    return NGX_OK;
}

ngx_int_t init_process(ngx_cycle_t *cycle) noexcept
{
    const sl::MainConf *mcf = used_conf(cycle);

    if (mcf == nullptr || !serves_requests()) {
        return NGX_OK;
    }

    /* nginx last looked at the clock before it read the configuration */
    ngx_time_update();

    mcf->recorder->enter();
    for_each_store(*mcf, [](sl::Store *store) { store->start(); });

    return NGX_OK;
}

/* Before nginx looks for connections that were left open. */
void exit_process(ngx_cycle_t *cycle) noexcept
{
    const sl::MainConf *mcf = used_conf(cycle);

    if (mcf == nullptr || !serves_requests()) {
        return;
    }

    for_each_store(*mcf, [](sl::Store *store) { store->stop(); });
    mcf->recorder->leave();
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
