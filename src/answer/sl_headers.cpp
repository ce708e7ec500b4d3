#include "answer/sl_headers.h"

#include "answer/sl_shown_values.h"
#include "base/pure/sl_number.h"
#include "base/sl_header.h"
#include "store/pure/sl_zone_name.h"

namespace sl {

namespace {

constexpr std::string_view kLimit = "X-RateLimit-Limit";
constexpr std::string_view kRemaining = "X-RateLimit-Remaining";
constexpr std::string_view kReset = "X-RateLimit-Reset";
constexpr std::string_view kRetryAfter = "Retry-After";
constexpr std::string_view kPolicy = "RateLimit-Policy";
constexpr std::string_view kService = "RateLimit";

/* A negative value means that it is not known: then the header is not set. */
void set_number(ngx_http_request_t *r, std::string_view name, int64_t value)
{
    if (value < 0) {
        return;
    }

    auto *text = static_cast<char *>(ngx_pnalloc(r->pool, kMaxDigits));

    if (text == nullptr) {
        return;
    }

    char *end = write_number(text, value);

    (void)set_header(r, name, {text, static_cast<size_t>(end - text)});
}

/* Where the store gave no answer only the limit itself can be told. */
void set_x_headers(ngx_http_request_t *r, const AppliedLimit &shown)
{
    remove_header(r, kLimit);
    remove_header(r, kRemaining);
    remove_header(r, kReset);

    set_number(r, kLimit, shown.verdict.max);
    set_number(r, kRemaining, remaining(shown.verdict));
    set_number(r, kReset, reset_value(r, shown));
}

/* Structured fields have no integers of more than 15 digits (RFC 9651): what is
 * larger would make a parser ignore the whole header. */
int64_t in_structured_field(int64_t number)
{
    constexpr int64_t kLargest = 999999999999999;

    return ngx_min(number, kLargest);
}

/* The window in whole seconds, which are all that RateLimit-Policy can say. */
int64_t window_seconds(const AppliedLimit &applied)
{
    return static_cast<int64_t>((applied.limit->zone->window + 999) / 1000);
}

/* The lists of both headers, while they are being written. */
class IetfLists {
  public:
    IetfLists(u_char *memory, size_t room_for_each) noexcept
        : policies_(memory), services_(memory + room_for_each),
          policy_(policies_), service_(services_)
    {}

    /* A unit is no longer than a name. */
    static constexpr size_t kMaxItem =
        sizeof(", \"\";q=;qu=\"\";w=") + 2 * kMaxZoneName + 2 * NGX_INT64_LEN;

    void add(const AppliedLimit &applied) noexcept
    {
        const ngx_str_t *name = &applied.limit->zone->name;
        const ngx_str_t *unit = &applied.limit->zone->unit;
        int64_t left = remaining(applied.verdict);
        int64_t seconds = wait_seconds(applied);

        policy_ = ngx_sprintf(policy_, "%s\"%V\";q=%L",
                              policy_ == policies_ ? "" : ", ", name,
                              in_structured_field(applied.verdict.max));

        if (view(*unit) != kDefaultUnit) {
            policy_ = ngx_sprintf(policy_, ";qu=\"%V\"", unit);
        }

        policy_ = ngx_sprintf(policy_, ";w=%L", window_seconds(applied));

        if (left < 0) {
            return;
        }

        service_ = ngx_sprintf(service_, "%s\"%V\";r=%L",
                               service_ == services_ ? "" : ", ", name,
                               in_structured_field(left));

        if (seconds >= 0) {
            service_ = ngx_sprintf(service_, ";t=%L", seconds);
        }
    }

    std::string_view policies() const noexcept
    {
        return view(policies_, policy_);
    }

    /* The list is empty where no store gave an answer. */
    std::string_view services() const noexcept
    {
        return view(services_, service_);
    }

  private:
    u_char *policies_;
    u_char *services_;
    u_char *policy_;
    u_char *service_;
};

/* Tells of all limits that applied, and first of the one shown elsewhere. */
void set_ietf_headers(ngx_http_request_t *r, const Check &check)
{
    remove_header(r, kPolicy);
    remove_header(r, kService);

    size_t room = check.limit_count() * IetfLists::kMaxItem;
    auto *memory = static_cast<u_char *>(ngx_pnalloc(r->pool, 2 * room));

    if (memory == nullptr) {
        return;
    }

    const AppliedLimit *shown = check.shown();
    IetfLists lists(memory, room);

    lists.add(*shown);

    for (size_t i = 0; i < check.limit_count(); i++) {
        if (&check.limits()[i] != shown) {
            lists.add(check.limits()[i]);
        }
    }

    (void)set_header(r, kPolicy, lists.policies());

    if (!lists.services().empty()) {
        (void)set_header(r, kService, lists.services());
    }
}

}  // namespace

void set_headers(ngx_http_request_t *r, const Check &check) noexcept
{
    ngx_uint_t styles = location_conf(r)->headers;
    int64_t retry_after = retry_after_value(check);

    if (styles & kXHeaders) {
        set_x_headers(r, *check.shown());
    }

    if (styles & kIetfHeaders) {
        set_ietf_headers(r, check);
    }

    if (retry_after >= 0) {
        remove_header(r, kRetryAfter);
        set_number(r, kRetryAfter, retry_after);
    }
}

}  // namespace sl
