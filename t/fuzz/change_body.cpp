/* Bodies of an operator's changes: what is understood is one of four forms, and
 * says what anybody would read in it. */

#include "monitor/pure/sl_change_body.h"

#include "base/pure/sl_json.h"
#include "base/pure/sl_number.h"
#include "fuzz.h"

namespace {

using sl::Act;
using sl::Complaint;
using sl::Intervention;

std::string without_white_space(const std::string &text)
{
    std::string kept;
    bool is_quoted = false;

    for (char ch : text) {
        is_quoted = is_quoted != (ch == '"');

        if (is_quoted || std::string(" \t\r\n").find(ch) == std::string::npos) {
            kept += ch;
        }
    }

    return kept;
}

/* The string that follows `name`; no form that is understood has an escape. */
std::string string_after(const std::string &text, const std::string &name)
{
    size_t begin = text.find(name) + name.size() + 1;

    return text.substr(begin, text.find('"', begin) - begin);
}

/* nginx's notation of a time, read from its end. */
int64_t microseconds(std::string text)
{
    constexpr std::string_view kUnits = "smhdwMy";
    constexpr int64_t kSeconds[] = {1,      60,          3600,        86400,
                                    604800, 30 * 86400L, 365 * 86400L};
    int64_t sum = 0;

    if (text.find_last_of("0123456789") == text.size() - 1) {
        text += 's';
    }

    while (!text.empty()) {
        int64_t seconds = kSeconds[kUnits.find(text.back())];
        int64_t digit = 1;

        text.pop_back();

        while (!text.empty() && text.back() >= '0' && text.back() <= '9') {
            sum += (text.back() - '0') * digit * seconds;
            digit *= 10;
            text.pop_back();
        }

        while (!text.empty() && text.back() == ' ') {
            text.pop_back();
        }
    }

    return sum * 1000000;
}

bool is_a_ruling(int64_t for_us)
{
    return for_us >= sl::kShortestRuling && for_us <= sl::kLongestRuling;
}

void check_ban(const std::string &text, const Intervention &change)
{
    check(change.max == sl::kOwnMax);

    if (change.for_us == 0) {
        check(text == R"({"ban":null})");
        return;
    }

    std::string time = string_after(text, R"("ban":)");

    check(text == R"({"ban":")" + time + R"("})");
    check(is_a_ruling(change.for_us) && change.for_us == microseconds(time));
}

void check_override(const std::string &text, const Intervention &change)
{
    if (change.for_us == 0) {
        check(change.max == sl::kOwnMax && text == R"({"max":null})");
        return;
    }

    std::string time = string_after(text, R"("for":)");
    std::string max = R"("max":)" + std::to_string(change.max);
    std::string duration = R"("for":")" + time + R"(")";

    check(change.max >= 1 && change.max <= sl::kLargestCount);
    check(is_a_ruling(change.for_us) && change.for_us == microseconds(time));
    check(text == "{" + max + "," + duration + "}"
          || text == "{" + duration + "," + max + "}");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    std::string body = Input(data, size).rest();
    Intervention change;
    Complaint complaint;

    if (!sl::read_change(body, &change, &complaint)) {
        check(!complaint.before.empty());
        check(complaint.has_given || complaint.given.empty());
        return 0;
    }

    check(sl::is_json(body));
    check(change.act == Act::kBan || change.act == Act::kOverride);

    /* with white space around it, it is the same */
    std::string wide = " \n" + body + "\t ";
    Intervention same;

    check(sl::read_change(wide, &same, &complaint));
    check(same.act == change.act && same.for_us == change.for_us
          && same.max == change.max);

    if (change.act == Act::kBan) {
        check_ban(without_white_space(body), change);
    } else {
        check_override(without_white_space(body), change);
    }

    return 0;
}
