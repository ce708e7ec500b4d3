#include "monitor/sl_metrics_page.h"

#include "base/pure/sl_sha256.h"

namespace sl {

namespace {

/* The `config` script generates these from page/. */
constexpr std::string_view kPage =
#include "sl_page_html.inc"
    ;
constexpr std::string_view kStyle =
#include "sl_page_css.inc"
    ;
constexpr std::string_view kScript =
#include "sl_page_js.inc"
    ;

constexpr std::string_view kStyleMark = "<!-- style -->\n";
constexpr std::string_view kScriptMark = "<!-- script -->\n";

static_assert(kPage.find(kStyleMark) < kPage.find(kScriptMark)
                  && kPage.find(kScriptMark) != std::string_view::npos,
              "the page has a place for its style, and then for its script");
static_assert(kStyle.find("</style") == std::string_view::npos
                  && kScript.find("</script") == std::string_view::npos,
              "neither ends before its end");

constexpr size_t kBase64Size = 44;

u_char *write_hash(u_char *p, std::string_view text)
{
    uint8_t digest[kSha256Size];
    sha256(text.data(), text.size(), digest);

    ngx_str_t binary = {sizeof(digest), digest};
    ngx_str_t encoded = {0, p};

    ngx_encode_base64(&encoded, &binary);

    return p + encoded.len;
}

}  // namespace

bool make_page_policy(ngx_conf_t *cf, ngx_str_t *policy) noexcept
{
    constexpr size_t kMaxSize = 256 + 2 * kBase64Size;

    policy->data = static_cast<u_char *>(ngx_pnalloc(cf->pool, kMaxSize));

    if (policy->data == nullptr) {
        return false;
    }

    u_char *p =
        ngx_sprintf(policy->data, "default-src 'none'; connect-src 'self'; "
                                  "img-src data:; base-uri 'none'; "
                                  "form-action 'none'; frame-ancestors 'none'; "
                                  "style-src 'sha256-");
    p = write_hash(p, kStyle);
    p = ngx_sprintf(p, "'; script-src 'sha256-");
    p = write_hash(p, kScript);
    p = ngx_sprintf(p, "'");

    policy->len = static_cast<size_t>(p - policy->data);

    return true;
}

void write_page(Output &text) noexcept
{
    size_t style = kPage.find(kStyleMark);
    size_t script = kPage.find(kScriptMark);

    text.refer(kPage.substr(0, style));
    text << "<style>";
    text.refer(kStyle);
    text << "</style>\n";
    text.refer(kPage.substr(style + kStyleMark.size(),
                            script - style - kStyleMark.size()));
    text << "<script>";
    text.refer(kScript);
    text << "</script>\n";
    text.refer(kPage.substr(script + kScriptMark.size()));
}

}  // namespace sl
