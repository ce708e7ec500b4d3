#include "monitor/sl_client_json.h"

#include <algorithm>

#include "base/pure/sl_readable_key.h"
#include "base/sl_clock.h"
#include "monitor/sl_json_pieces.h"
#include "monitor/sl_metrics_walk.h"
#include "monitor/sl_response.h"

namespace sl {

namespace {

/* No more of what somebody sent is quoted. */
constexpr size_t kMostQuoted = 64;

/* A moment so far from now, by this nginx's clock: the store's may differ. */
void write_moment(uint64_t now_us, int64_t from_now_us, Output &text)
{
    text.seconds(now_us + static_cast<uint64_t>(from_now_us));
}

void write_ban(uint64_t now_us, int64_t left_us, Output &text)
{
    text << "\"ban\":";

    if (left_us <= 0) {
        text << "null";
        return;
    }

    text << "{\"until\":";
    write_moment(now_us, left_us, text);
    text << "}";
}

void write_override(uint64_t now_us, int64_t max, int64_t left_us, Output &text)
{
    text << "\"override\":";

    if (max == kOwnMax) {
        text << "null";
        return;
    }

    text << "{\"max\":" << max << ",\"until\":";
    write_moment(now_us, left_us, text);
    text << "}";
}

/* What is left of the client's max, as far as that is known. */
void write_remaining(const Zone &zone, const Standing &standing, Output &text)
{
    int64_t max = standing.max != kOwnMax ? standing.max : zone.max;

    text << ",\"remaining\":";

    if (max == kMaxVaries) {
        text << "null";
    } else {
        text << std::max<int64_t>(0, max - standing.used);
    }
}

void write_requests(uint64_t now_us, const Standing &standing, Output &text)
{
    Commas commas(text);

    text << ",\"requests\":[";

    for (size_t i = 0; i < standing.shown; i++) {
        const CountedRequest &request = standing.requests[i];

        commas.next() << "{\"time\":";
        write_moment(now_us, -request.ago_us, text);
        text << ",\"id\":";
        text.json_string(request.id_text())
            << ",\"cost\":" << request.cost << "}";
    }

    text << "]";
}

void write_masked(const MainConf &mcf, std::string_view key, Output &text)
{
    char masked[kMaxMaskedKey];
    size_t size = mask_key(mcf.recorder->metrics()->hash_of(key), key, masked);

    text.json_string({masked, size});
}

void write_ruled_key(const MainConf &mcf, std::string_view key, KeysShown keys,
                     Output &text)
{
    if (keys == kNoKeys) {
        text << "null";
    } else if (keys == kPlainKeys || !is_whole_key(key)) {
        text.json_string(key);
    } else {
        write_masked(mcf, key, text);
    }
}

}  // namespace

void write_client(const MainConf &mcf, const Zone &zone, std::string_view key,
                  const ClientAnswer &answer, Output &text) noexcept
{
    const Standing &standing = answer.standing;
    uint64_t now_us = wall_clock_us();

    text << "{\"zone\":";
    text.json_string(view(zone.name)) << ",\"key\":";
    text.long_json_string(key) << ",\"masked\":";
    write_masked(mcf, key, text);
    text << ",\"stored_as\":";
    text.long_json_string(answer.stored_as) << ",\"store\":";
    text.json_string(zone.store->kind()) << ",\"server\":";
    text.json_string(answer.server) << ",\"now\":";
    text.seconds(now_us) << ",\"window\":";
    text.seconds(zone.window * 1000) << ",\"max\":";
    write_max(zone, text);
    text << ",\"unit\":";
    text.json_string(view(zone.unit)) << ",\"used\":" << standing.used;
    write_remaining(zone, standing, text);
    text << ",\"reset\":";

    if (standing.wait_us == kNoWait) {
        text << "null";
    } else {
        text.seconds(static_cast<uint64_t>(standing.wait_us));
    }

    text << ",";
    write_ban(now_us, standing.ban_left_us, text);
    text << ",";
    write_override(now_us, standing.max, standing.max_left_us, text);
    text << ",\"counted\":" << standing.entries;
    write_requests(now_us, standing, text);
    text << "}\n";
}

void write_rulings(const MainConf &mcf, const Zone &zone, KeysShown keys,
                   const RulingsAnswer &answer, Output &text) noexcept
{
    Commas commas(text);
    uint64_t now_us = wall_clock_us();

    text << "{\"zone\":";
    text.json_string(view(zone.name)) << ",\"clients\":[";

    for (size_t i = 0; i < answer.count; i++) {
        const RuledClient &client = answer.clients[i];

        commas.next() << "{\"key\":";
        write_ruled_key(mcf, client.key, keys, text);
        text << ",";
        write_ban(now_us, client.ban_left_us, text);
        text << ",";
        write_override(now_us, client.max, client.max_left_us, text);
        text << "}";
    }

    text << "],\"cursor\":";

    if (answer.cursor.empty()) {
        text << "null";
    } else {
        text.json_string(answer.cursor);
    }

    text << "}\n";
}

void write_no_answer(const Zone &zone, StoreError error,
                     std::string_view reason, Output &text) noexcept
{
    text << "{\"error\":\"the store \\\"" << store_name(zone)
         << "\\\" gave no answer, "
         << kStoreErrorNames[static_cast<size_t>(error)];

    if (!reason.empty()) {
        text << ": ";
        text.json_text(reason);
    }

    text << "\"}\n";
}

void write_complaint(const Complaint &complaint, Output &text) noexcept
{
    text << "{\"error\":\"";
    text.json_text(complaint.before);

    if (complaint.has_given) {
        std::string_view given = complaint.given.substr(0, kMostQuoted);

        text << "\\\"";
        text.json_text(given)
            << (given.size() < complaint.given.size() ? "..." : "") << "\\\"";
    }

    text.json_text(complaint.after) << "\"}\n";
}

/* A client that waits to be told to go on with its body need not send it. */
ngx_int_t send_complaint(ngx_http_request_t *r, ngx_uint_t status,
                         const Complaint &complaint) noexcept
{
    Output text(r->pool);

    r->expect_tested = 1;

    ngx_int_t rc = ngx_http_discard_request_body(r);

    if (rc != NGX_OK) {
        return rc;
    }

    write_complaint(complaint, text);

    return send_text(r, status, kJsonType, text);
}

}  // namespace sl
