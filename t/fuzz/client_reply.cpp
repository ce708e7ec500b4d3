/*
 * Texts about clients that come from Redis or from operators: rulings, names by
 * which clients are found, and places in a list. What is read of them can be
 * written again, and is the same then.
 */

#include "redis/pure/sl_client_reply.h"

#include "fuzz.h"
#include "redis/pure/sl_cluster_slot.h"
#include "redis/pure/sl_key.h"
#include "redis/pure/sl_scan_place.h"

namespace {

using sl::KeyStyle;

/* Numbers may have zeros in front, and no other freedom. */
std::string without_zeros(const std::string &text)
{
    std::string plain;
    bool is_in_number = false;

    for (size_t i = 0; i < text.size(); i++) {
        bool has_digit_behind =
            i + 1 < text.size() && text[i + 1] >= '0' && text[i + 1] <= '9';

        if (text[i] == '0' && !is_in_number && has_digit_behind) {
            continue;
        }

        is_in_number = text[i] != ':';
        plain += text[i];
    }

    return plain;
}

void check_ruling(const std::string &text)
{
    sl::Ruling ruling;

    if (!sl::read_ruling(text, &ruling)) {
        return;
    }

    check(std::to_string(ruling.ban_until_us) + ":" + std::to_string(ruling.max)
              + ":" + std::to_string(ruling.max_until_us)
          == without_zeros(text));

    for (int64_t now : {int64_t{0}, ruling.ban_until_us, ruling.max_until_us,
                        ruling.ends_us() - 1})
    {
        sl::RuledClient client{};
        bool is_ruled = sl::ruled_now(ruling, now, &client);

        check(is_ruled == (ruling.ends_us() > now));
        check(is_ruled == (client.ban_left_us > 0 || client.max_left_us > 0));
        check((client.max == sl::kOwnMax) == (client.max_left_us == 0));
    }
}

void check_time(const std::string &text)
{
    int64_t time;

    if (sl::read_time(text, &time)) {
        check(std::to_string(time) == without_zeros(text));
    }
}

void check_place(const std::string &text)
{
    char again[sl::ScanPlace::kMaxText];
    sl::ScanPlace place;

    if (place.parse(text) && !text.empty()) {
        check(place.slot < sl::kClusterSlots);
        check(std::string(again, place.write(again)) == text);
    }
}

/* It leads to a client that is counted in no log, or looks so. */
bool has_format(const std::string &name)
{
    return name.rfind("p:z!:{p:z!", 0) == 0;
}

void check_name(const std::string &name)
{
    for (KeyStyle style : {KeyStyle::kPlain, KeyStyle::kInBraces}) {
        std::string client(sl::client_of_index(name, "p", "z", style));

        if (client.empty()) {
            continue;
        }

        check(client.size() <= sl::kMaxReadableKey);
        check(client.find_first_of("{}") == std::string::npos);

        /* nobody can make a hash of something that has this one */
        if (sl::is_whole_key(client) && !has_format(name)) {
            sl::RedisKey set = sl::redis_key("p", "z", client, style);

            check(sl::index_key("p", "z", set, style).view() == name);
            check(sl::cluster_slot(name) == sl::cluster_slot(set.view()));
        }
    }
}

void check_request(Input input)
{
    auto ago = input.number<int64_t>();
    auto cost = input.number<int64_t>();
    std::string id = input.rest();
    sl::CountedRequest request;

    if (sl::read_request(ago, cost, id, &request)) {
        check(request.id_text() == id);
        check(request.ago_us == ago && ago >= 0);
        check(request.cost == cost && cost >= 0);
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Input input(data, size);
    std::string text = input.rest();

    check_ruling(text);
    check_time(text);
    check_place(text);
    check_name(text);
    check_request(input);

    return 0;
}
