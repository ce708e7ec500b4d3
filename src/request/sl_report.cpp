#include "request/sl_report.h"

#include <algorithm>

#include "request/sl_recording.h"

namespace sl {

namespace {

ZoneEvent event_of(const MainConf &mcf, const AppliedLimit &applied,
                   Outcome outcome)
{
    ZoneResult result = result_of(applied.verdict, applied.has_failed, outcome);

    return {result,
            found_by(applied.verdict, applied.cost, result),
            result == ZoneResult::kPassed && is_near_limit(applied.verdict),
            applied.decided_by == kDenyCache,
            applied.answered_by == mcf.memory
                && applied.limit->zone->store != mcf.memory,
            view(applied.key)};
}

}  // namespace

void Report::note_exempt(ngx_http_request_t *r, const Zone *zone) noexcept
{
    if (exempt_.elts == nullptr
        && ngx_array_init(&exempt_, r->pool, 1, sizeof(Zone *)) != NGX_OK)
    {
        return;
    }

    auto noted = elements<const Zone *>(exempt_);

    if (std::find(noted.begin(), noted.end(), zone) != noted.end()) {
        return;
    }

    auto **added = static_cast<const Zone **>(ngx_array_push(&exempt_));

    if (added != nullptr) {
        *added = zone;
    }
}

void Report::tell(ngx_http_request_t *r, const AppliedLimits &limits,
                  Outcome outcome) noexcept
{
    const MainConf &mcf = *main_conf(r);

    for (; told_limits_ < limits.size(); told_limits_++) {
        const AppliedLimit &applied = limits.all()[told_limits_];

        mcf.recorder->record(r, *applied.limit->zone,
                             event_of(mcf, applied, outcome));
    }

    for (; told_exempt_ < exempt_.nelts; told_exempt_++) {
        const Zone *zone = elements<const Zone *>(exempt_)[told_exempt_];

        /* a limit of the zone may have applied elsewhere, after a redirect */
        if (!limits.have_zone(*zone)) {
            mcf.recorder->record(
                r, *zone,
                {ZoneResult::kExempt, kFoundNothing, false, false, false, {}});
        }
    }
}

}  // namespace sl
