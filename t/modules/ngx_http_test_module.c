/*
 * What other modules may do to a request, for t/other_modules.t: answer it in
 * the access or the precontent phase, and change the status of its answer in a
 * header filter. Also what they had better not do.
 *
 *   test_access ok | 401 | 403;       in a location: what its access handler
 *                                     returns
 *   test_precontent ok | 401 | 403;   what its precontent handler returns
 *   test_status CODE;                 in a location: what it makes of a 200
 *   test_removes_access_handlers on;  in http: those of modules before it
 */

#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

typedef struct {
    ngx_flag_t removes_access_handlers;
} main_conf_t;

typedef struct {
    ngx_int_t access;
    ngx_int_t precontent;
    ngx_int_t status;
} location_conf_t;

static ngx_module_t ngx_http_test_access_module;
static ngx_module_t ngx_http_test_status_module;

static ngx_http_output_header_filter_pt next_header_filter;

static ngx_int_t access_handler(ngx_http_request_t *r)
{
    location_conf_t *conf =
        ngx_http_get_module_loc_conf(r, ngx_http_test_access_module);

    return conf->access == NGX_CONF_UNSET ? NGX_DECLINED : conf->access;
}

static ngx_int_t precontent_handler(ngx_http_request_t *r)
{
    location_conf_t *conf =
        ngx_http_get_module_loc_conf(r, ngx_http_test_access_module);

    return conf->precontent == NGX_CONF_UNSET ? NGX_DECLINED : conf->precontent;
}

static ngx_int_t status_filter(ngx_http_request_t *r)
{
    location_conf_t *conf =
        ngx_http_get_module_loc_conf(r, ngx_http_test_access_module);

    if (conf->status != NGX_CONF_UNSET && r->headers_out.status == NGX_HTTP_OK)
    {
        r->headers_out.status = conf->status;
    }

    return next_header_filter(r);
}

static void *create_main_conf(ngx_conf_t *cf)
{
    main_conf_t *conf = ngx_pcalloc(cf->pool, sizeof(main_conf_t));

    if (conf != NULL) {
        conf->removes_access_handlers = NGX_CONF_UNSET;
    }

    return conf;
}

static void *create_location_conf(ngx_conf_t *cf)
{
    location_conf_t *conf = ngx_palloc(cf->pool, sizeof(location_conf_t));

    if (conf != NULL) {
        conf->access = NGX_CONF_UNSET;
        conf->precontent = NGX_CONF_UNSET;
        conf->status = NGX_CONF_UNSET;
    }

    return conf;
}

static ngx_int_t add_handler(ngx_array_t *handlers,
                             ngx_http_handler_pt function)
{
    ngx_http_handler_pt *handler = ngx_array_push(handlers);

    if (handler == NULL) {
        return NGX_ERROR;
    }

    *handler = function;

    return NGX_OK;
}

static ngx_int_t add_handlers(ngx_conf_t *cf)
{
    main_conf_t *conf =
        ngx_http_conf_get_module_main_conf(cf, ngx_http_test_access_module);
    ngx_http_core_main_conf_t *cmcf =
        ngx_http_conf_get_module_main_conf(cf, ngx_http_core_module);
    ngx_array_t *access = &cmcf->phases[NGX_HTTP_ACCESS_PHASE].handlers;
    ngx_array_t *precontent = &cmcf->phases[NGX_HTTP_PRECONTENT_PHASE].handlers;

    if (conf->removes_access_handlers == 1) {
        access->nelts = 0;
    }

    if (add_handler(access, access_handler) != NGX_OK) {
        return NGX_ERROR;
    }

    return add_handler(precontent, precontent_handler);
}

static ngx_int_t add_status_filter(ngx_conf_t *cf)
{
    next_header_filter = ngx_http_top_header_filter;
    ngx_http_top_header_filter = status_filter;

    return NGX_OK;
}

static ngx_conf_enum_t answers[] = {
    {ngx_string("ok"), NGX_OK},
    {ngx_string("401"), NGX_HTTP_UNAUTHORIZED},
    {ngx_string("403"), NGX_HTTP_FORBIDDEN},
    {ngx_null_string, 0},
};

static ngx_command_t commands[] = {
    {ngx_string("test_access"), NGX_HTTP_LOC_CONF | NGX_CONF_TAKE1,
     ngx_conf_set_enum_slot, NGX_HTTP_LOC_CONF_OFFSET,
     offsetof(location_conf_t, access), answers},
    {ngx_string("test_precontent"), NGX_HTTP_LOC_CONF | NGX_CONF_TAKE1,
     ngx_conf_set_enum_slot, NGX_HTTP_LOC_CONF_OFFSET,
     offsetof(location_conf_t, precontent), answers},
    {ngx_string("test_status"), NGX_HTTP_LOC_CONF | NGX_CONF_TAKE1,
     ngx_conf_set_num_slot, NGX_HTTP_LOC_CONF_OFFSET,
     offsetof(location_conf_t, status), NULL},
    {ngx_string("test_removes_access_handlers"),
     NGX_HTTP_MAIN_CONF | NGX_CONF_FLAG, ngx_conf_set_flag_slot,
     NGX_HTTP_MAIN_CONF_OFFSET, offsetof(main_conf_t, removes_access_handlers),
     NULL},
    ngx_null_command,
};

static ngx_http_module_t access_module_ctx = {
    .postconfiguration = add_handlers,
    .create_main_conf = create_main_conf,
    .create_loc_conf = create_location_conf,
};

static ngx_http_module_t status_module_ctx = {
    .postconfiguration = add_status_filter,
};

// clang-format off
static ngx_module_t ngx_http_test_access_module = {
    NGX_MODULE_V1,
    &access_module_ctx,             /* module context */
    commands,                       /* module directives */
    NGX_HTTP_MODULE,                /* module type */
    NULL,                           /* init master */
    NULL,                           /* init module */
    NULL,                           /* init process */
    NULL,                           /* init thread */
    NULL,                           /* exit thread */
    NULL,                           /* exit process */
    NULL,                           /* exit master */
    NGX_MODULE_V1_PADDING
};

static ngx_module_t ngx_http_test_status_module = {
    NGX_MODULE_V1,
    &status_module_ctx,             /* module context */
    NULL,                           /* module directives */
    NGX_HTTP_MODULE,                /* module type */
    NULL,                           /* init master */
    NULL,                           /* init module */
    NULL,                           /* init process */
    NULL,                           /* init thread */
    NULL,                           /* exit thread */
    NULL,                           /* exit process */
    NULL,                           /* exit master */
    NGX_MODULE_V1_PADDING
};
// clang-format on

/*
 * What nginx looks for. As modules without filters usually do, the first names
 * none that it must stand before, and becomes the last of all. The filter of
 * the other one runs after those of modules that are loaded.
 */
ngx_module_t *ngx_modules[] = {&ngx_http_test_access_module,
                               &ngx_http_test_status_module, NULL};

char *ngx_module_names[] = {"ngx_http_test_access_module",
                            "ngx_http_test_status_module", NULL};

char *ngx_module_order[] = {"ngx_http_test_status_module",
                            "ngx_http_headers_filter_module",
                            "ngx_http_test_access_module", NULL};
