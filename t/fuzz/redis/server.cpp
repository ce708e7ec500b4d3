#include "redis/server.h"

#include <algorithm>
#include <cstring>

#include "fuzz.h"
#include "redis/pure/sl_cluster_slot.h"

namespace fuzz {

namespace {

/* As in the module: so often a call is sent elsewhere. */
constexpr unsigned kMostRedirections = 5;

std::string bulk(const std::string &text)
{
    return "$" + std::to_string(text.size()) + "\r\n" + text + "\r\n";
}

/* Takes a line "XNUMBER", and CR LF; -1: it has not come yet. */
long take_size(std::string *input, size_t *at, char mark)
{
    size_t end = input->find("\r\n", *at);

    if (end == std::string::npos) {
        return -1;
    }

    check((*input)[*at] == mark && end > *at + 1);

    long size = 0;

    for (size_t i = *at + 1; i < end; i++) {
        check((*input)[i] >= '0' && (*input)[i] <= '9' && size < 100000);
        size = size * 10 + ((*input)[i] - '0');
    }

    *at = end + 2;

    return size;
}

/* Takes a whole command from the input; false: it has not come yet. */
bool take_words(std::string *input, Words *words)
{
    size_t at = 0;
    long count = take_size(input, &at, '*');

    check(count != 0);

    for (; count > 0; count--) {
        long size = take_size(input, &at, '$');

        if (size < 0 || input->size() < at + static_cast<size_t>(size) + 2) {
            return false;
        }

        words->push_back(input->substr(at, static_cast<size_t>(size)));
        at += static_cast<size_t>(size);
        check(input->compare(at, 2, "\r\n") == 0);
        at += 2;
    }

    if (count < 0) {
        return false;
    }

    input->erase(0, at);

    return true;
}

std::string number(int64_t n)
{
    return ":" + std::to_string(n) + "\r\n";
}

void pack(int64_t n, std::string *to)
{
    for (int byte = 0; byte < 8; byte++) {
        *to += static_cast<char>(static_cast<uint64_t>(n) >> 8 * byte);
    }
}

const char *const kMaps[] = {
    "a 127.0.0.1:7000@17000 myself,master - 0 0 1 connected 0-5460\n"
    "b 127.0.0.1:7001@17001 master - 0 0 2 connected 5461-10922\n"
    "c 127.0.0.1:7002@17002 master - 0 0 3 connected 10923-16383\n"
    "d 127.0.0.1:7003@17003 slave a 0 0 1 connected\n",

    "a 127.0.0.1:7000@17000,one.test myself,master - 0 0 1 connected 0-8000\n"
    "b 127.0.0.1:7004@17004,two.test master - 0 0 2 connected 8001-16383 "
    "[8001->-a]\n",

    "a :7000@17000 myself,master - 0 0 1 connected 0-16383\n",

    "a 127.0.0.1:7000@17000 myself,master - 0 0 1 connected\n",
};

const char *const kPrimaries[] = {
    "*2\r\n$9\r\n127.0.0.1\r\n$4\r\n7000\r\n",
    "*2\r\n$9\r\n127.0.0.1\r\n$4\r\n7001\r\n",
    "*2\r\n$10\r\nknown.test\r\n$4\r\n7000\r\n",
    "*2\r\n$10\r\nlater.test\r\n$4\r\n7000\r\n",
    "*2\r\n$12\r\nunknown.test\r\n$4\r\n7000\r\n",
    "*2\r\n$9\r\nnone.test\r\n$4\r\n7000\r\n",
    "*-1\r\n",
};

const char *const kRoles[] = {
    "*3\r\n$6\r\nmaster\r\n:0\r\n*1\r\n*3\r\n$9\r\n127.0.0.1\r\n$4\r\n7001\r\n"
    "$1\r\n0\r\n",
    "*5\r\n$5\r\nslave\r\n$9\r\n127.0.0.1\r\n:7001\r\n$9\r\nconnected\r\n:"
    "0\r\n",
};

const char *const kAddresses[] = {
    "127.0.0.1:7000",  "127.0.0.1:7001",  "127.0.0.1:7002",    ":7001",
    "known.test:7001", "later.test:7002", "unknown.test:7003", "::1:7004",
};

struct Error {
    const char *text;
    Ledger::Outcome outcome;
    bool has_address;
};

using Outcome = Ledger::Outcome;

const Error kErrors[] = {
    {"NOSCRIPT No matching script.", Outcome::kNoScript, false},
    {"MOVED", Outcome::kMoved, true},
    {"ASK", Outcome::kMoved, true},
    {"TRYAGAIN Multiple keys request during rehashing", Outcome::kTryAgain,
     false},
    {"CROSSSLOT Keys in request don't hash to the same slot",
     Outcome::kNotTogether, false},
    {"ERR something is wrong with it", Outcome::kNotTogether, false},
    {"LOADING Redis is loading the dataset in memory", Outcome::kLater, false},
    {"READONLY You can't write against a read only replica.", Outcome::kLater,
     false},
    {"NOAUTH Authentication required.", Outcome::kFinal, false},
    {"ERR max number of clients reached", Outcome::kNotTogether, false},
    {"CLUSTERDOWN The cluster is down", Outcome::kLater, false},
    {"NOPERM this user has no permissions", Outcome::kFinal, false},
};

/* ---- what it is asked ---- */

bool is_number_of_buckets(const std::string &word)
{
    return !word.empty() && word.size() <= 3 && word[0] != '0'
           && word.find_first_not_of("0123456789") == word.npos
           && std::stoul(word) <= 100;
}

bool is_kind(const std::string &word)
{
    return word == "l" || word == "p"
           || (word[0] == 'b' && is_number_of_buckets(word.substr(1)));
}

/* One limit's kind. */
struct LimitKind {
    std::string how;
    long cost = 1;
    std::string rule;
};

/* Takes it from the kinds of all limits. */
LimitKind take_kind(std::string *kinds)
{
    LimitKind kind;
    size_t ends = std::min(kinds->find('/'), kinds->size());

    kind.how = kinds->substr(0, ends);
    kinds->erase(0, ends + 1);

    while (kind.how.size() > 1
           && (kind.how.back() == 'd' || kind.how.back() == 'n'))
    {
        kind.rule.insert(0, 1, kind.how.back());
        kind.how.pop_back();
    }

    size_t star = kind.how.find('*');

    if (star != kind.how.npos) {
        kind.cost = std::stol(kind.how.substr(star + 1));
        kind.how.erase(star);
        check(kind.cost != 1);
    }

    check(is_kind(kind.how));
    check(kind.rule.empty() || kind.rule == "d" || kind.rule == "n"
          || kind.rule == "dn");

    return kind;
}

/* Of PREFIX:ZONE:CLIENT or PREFIX:ZONE!FORMAT:CLIENT. */
std::string zone_of(const std::string &key)
{
    size_t begins = key.find(':') + 1;

    return key.substr(begins, key.find_first_of("!:", begins) - begins);
}

/* The name of a key says how it is counted there: no other way finds it. */
void check_format(const std::string &key, const std::string &kind,
                  const std::string &window)
{
    std::string milliseconds = std::to_string(std::stol(window) / 1000);
    std::string format = kind == "l" ? ""
                         : kind == "p"
                             ? "!p"
                             : "!" + kind.substr(1) + "x" + milliseconds;
    size_t at = key.find_first_of("!:", key.find(':') + 1);

    check(key.compare(at, format.size() + 1, format + ":") == 0);
}

}  // namespace

ScriptCall::ScriptCall(const Words &command)
{
    if (command[0] == "EVAL") {
        read_errand(command);
        return;
    }

    if (command[0] != "EVALSHA") {
        return;
    }

    check(command.size() >= 4);

    size_t keys = std::stoul(command[2]);

    check(command.size() > 3 + keys);
    limits = keys;

    Word first = command.begin() + 3;
    Word args = first + static_cast<long>(keys);

    if (*args == ":settle") {
        read_settlement(command, first, args);
    } else if (*args == ":try") {
        read_probe(command, first, args);
    } else {
        read_check(command, first, args);
    }
}

void ScriptCall::read_errand(const Words &command)
{
    if (command.size() == 4) {
        check(command[2] == "1");
        kind = Kind::kLooksUp;
        return;
    }

    /* who only looks names one key */
    bool is_look = command[2] == "1";
    Word args = command.begin() + (is_look ? 4 : 5);

    check(command.size() == (is_look ? 10 : 11));
    check(is_look == (args[0] == ":look"));
    check(is_look
          || (command[2] == "2"
              && sl::cluster_slot(command[3]) == sl::cluster_slot(command[4])));
    check(is_kind(args[1]) && args[5] == "1");
    check_format(command[3], args[1], args[4]);

    kind = Kind::kIntervenes;
    ids = {"o" + args[2]};
}

void ScriptCall::read_check(const Words &command, Word keys, Word args)
{
    size_t all_keys = limits;

    std::string kinds = *args;

    limits =
        1 + static_cast<size_t>(std::count(kinds.begin(), kinds.end(), '/'));
    check(all_keys > 0 && all_keys % limits == 0);

    size_t requests = all_keys / limits;
    Word end = args + 1 + static_cast<long>(2 * limits);
    bool has_ids = false;

    check(end <= command.end());

    for (size_t i = 0; i < limits; i++) {
        Word numbers = args + 1 + static_cast<long>(2 * i);
        LimitKind limit = take_kind(&kinds);

        check(limit.cost <= std::stol(numbers[1]));
        has_ids = has_ids || limit.how == "l";

        for (size_t r = 0; r < requests; r++) {
            check_format(keys[static_cast<long>(r * limits + i)], limit.how,
                         numbers[0]);
        }
    }

    kind = Kind::kAsks;
    ids.assign(end, command.end());

    for (size_t r = 0; r < requests && !has_ids; r++) {
        ids.push_back(zone_of(keys[static_cast<long>(r * limits)]));
    }

    check(ids.size() == requests);
}

void ScriptCall::read_settlement(const Words &command, Word keys, Word args)
{
    check(limits > 0
          && command.end() - args == 4 + static_cast<long>(2 * limits));

    std::string kinds = args[1];

    kind = Kind::kSettles;
    ids = {args[3]};

    for (size_t i = 0; i < limits; i++) {
        Word numbers = args + 4 + static_cast<long>(2 * i);
        LimitKind limit = take_kind(&kinds);

        check(limit.rule.empty());
        check_format(keys[static_cast<long>(i)], limit.how, numbers[0]);
        lowered_nameless +=
            limit.how != "l" && std::stol(numbers[1]) < limit.cost;
    }

    /* they find by that what they have counted */
    check(args[2] != "0" || lowered_nameless == 0);
}

void ScriptCall::read_probe(const Words &command, Word keys, Word args)
{
    check(command.end() - args
          == 2 + static_cast<long>(2 * limits) + (limits > 0 ? 1 : 0));

    std::string kinds = args[1];

    kind = Kind::kProbe;
    ids = {"probe"};

    for (size_t i = 0; i < limits; i++) {
        check(take_kind(&kinds).how == "l");
        check_format(keys[static_cast<long>(i)], "l", "0");
    }
}

int64_t mark_of(const std::string &id, size_t limit)
{
    return std::stol(id.substr(1)) * 100 + static_cast<long>(limit);
}

namespace {

/* Who is asked about. */
Words fates_of(const ScriptCall &call)
{
    switch (call.kind) {
    case ScriptCall::Kind::kAsks:
    case ScriptCall::Kind::kIntervenes:
        return call.ids;
    default:
        return {};
    }
}

}  // namespace

void Ledger::sent(const Words &command)
{
    ScriptCall call(command);

    if (call.kind == ScriptCall::Kind::kSettles) {
        settling_sent(call);
    }

    for (const std::string &id : fates_of(call)) {
        check(fates_.count(id) == 1);

        Fate &fate = fates_[id];

        check(!is_honest_ || fate.may_be_sent);
        fate.may_be_sent = false;
    }
}

/* What is not taken from those without ids may be repeated. */
void Ledger::settling_sent(const ScriptCall &call)
{
    check(fates_.count(call.ids[0]) == 1);

    size_t &left = fates_[call.ids[0]].nameless_to_lower;

    check(!is_honest_ || call.lowered_nameless <= left);
    left -= std::min(left, call.lowered_nameless);
}

void Ledger::replied(const Words &command, Outcome outcome)
{
    ScriptCall call(command);
    Words ids = fates_of(call);

    if (outcome == Outcome::kNotTogether && ids.size() < 2) {
        outcome = Outcome::kFinal;
    }

    for (const std::string &id : ids) {
        replied(id, outcome);
    }

    if (call.kind == ScriptCall::Kind::kSettles && outcome != Outcome::kFinal) {
        fates_[call.ids[0]].nameless_to_lower += call.lowered_nameless;
    }
}

void Ledger::replied(const std::string &id, Outcome outcome)
{
    Fate &fate = fates_[id];

    switch (outcome) {
    case Outcome::kFinal:
    case Outcome::kLater:
        break;
    case Outcome::kNoScript:
        fate.may_be_sent = ++fate.without_script == 1;
        break;
    case Outcome::kMoved:
        fate.may_be_sent =
            is_cluster_ && ++fate.redirections <= kMostRedirections;
        break;
    case Outcome::kTryAgain:
        fate.may_be_sent = is_cluster_;
        fate.redirections = 0;
        break;
    case Outcome::kNotTogether:
        fate.may_be_sent = true;
        break;
    }
}

/* A Redis hangs up on those who say too much before they are logged in. It
 * takes words of 16 KB; this bound is one that the scripts exceed however short
 * they are. */
void Server::check_modesty(const Words &command) const
{
    constexpr size_t kMostWords = 10;
    constexpr size_t kLongestWord = 512;

    check(has_spoken_ || command.size() <= kMostWords);

    for (const std::string &word : command) {
        check(has_spoken_ || word.size() <= kLongestWord);
    }
}

bool Server::listen()
{
    if (is_deaf_) {
        return wire_->is_open();
    }

    bool is_open = wire_->receive(&input_);
    Words words;

    while (!input_.empty() && take_words(&input_, &words)) {
        check_modesty(words);
        ledger_.sent(words);
        commands_.push_back(std::move(words));
        words.clear();
    }

    return is_open;
}

Words Server::take_command()
{
    Words words = std::move(commands_.front());

    commands_.pop_front();

    return words;
}

/* ---- what it says ---- */

namespace {

/* What was ruled: there are such that have ended, and what is none. */
const char *const kRulings[] = {
    "*2\r\n$4\r\n1000\r\n$6\r\n5000:0\r\n",
    "*2\r\n$4\r\n1000\r\n$8\r\n5000:0:0\r\n",
    "*2\r\n$4\r\n1000\r\n$11\r\n5000:7:2000\r\n",
    "*2\r\n$4\r\n1000\r\n$10\r\n500:7:2000\r\n",
    "*2\r\n$4\r\n1000\r\n$9\r\n500:7:200\r\n",
    "*2\r\n$4\r\n1000\r\n$-1\r\n",
    "*2\r\n$4\r\n1000\r\n-WRONGTYPE it is another thing\r\n",
    "*2\r\n$4\r\n1000\r\n-NOPERM it is not yours\r\n",
};

/* Where a client stands. What is used tells whose answer it is. */
std::string standing(const std::string &id, unsigned how)
{
    constexpr size_t kShown[] = {0, 1, 5, 100};

    size_t shown = kShown[how & 3];
    std::string text = "*" + std::to_string(6 + 3 * shown) + "\r\n"
                       + number(std::stol(id.substr(1))) + number(1000);

    text += number(how & 4 ? 3000 : 0);
    text += number(how & 8 ? 7 : 0) + number(how & 8 ? 2000 : 0);
    text += number(static_cast<int64_t>(shown) + (how & 16 ? 1 : 0));

    for (size_t i = 0; i < shown; i++) {
        text += number(static_cast<int64_t>(i)) + number(1)
                + bulk(how & 64 ? "" : "an-id");
    }

    return text;
}

}  // namespace

/* Two bits of `how` say how many it finds, and two how much is left. */
std::string Server::answer_of_scan(const Words &command, unsigned how) const
{
    constexpr size_t kFound[] = {1, 0, 3, 150};
    constexpr std::string_view kFormats[] = {"", "!p", "!6x60000"};

    check(command.size() == 6 && command[3] == "rate_limit:zone!:*");

    size_t found = kFound[how & 3];
    unsigned long next = std::stoul(command[1]) + 1;
    std::string names;

    if (next % 4 > (how >> 2 & 3)) {
        next = 0;
    }

    /* some it has said before, and others are none of the module's */
    for (size_t i = 0; i < found; i++) {
        std::string client = "client" + std::to_string(i % 130);
        std::string zone =
            "rate_limit:zone" + std::string(kFormats[i % 130 % 3]);
        std::string tag = ledger_.is_cluster() ? client : zone + ":" + client;

        names += bulk("rate_limit:zone!:{" + tag + (i % 7 == 6 ? "" : "}"));
    }

    return "*2\r\n" + bulk(std::to_string(next)) + "*" + std::to_string(found)
           + "\r\n" + names;
}

void Server::reply_well(unsigned how)
{
    if (!is_asked()) {
        return;
    }

    Words command = take_command();
    const std::string &name = command[0];
    ScriptCall call(command);

    if (call.kind == ScriptCall::Kind::kIntervenes) {
        output_ += standing(call.ids[0], how);
        ledger_.replied(command, Outcome::kFinal);
    } else if (call.kind == ScriptCall::Kind::kLooksUp) {
        output_ += kRulings[how % std::size(kRulings)];
    } else if (call.kind != ScriptCall::Kind::kNone) {
        output_ += answer_of_script(call, how);
    } else if (name == "SCAN") {
        output_ += answer_of_scan(command, how);
    } else if (name == "AUTH" || name == "SELECT" || name == "ASKING") {
        output_ += "+OK\r\n";
    } else if (name == "SCRIPT") {
        output_ += bulk(std::string(40, 'a'));
    } else if (name == "ROLE") {
        output_ += kRoles[how % std::size(kRoles)];
    } else if (name == "CLUSTER") {
        output_ += bulk(kMaps[how % std::size(kMaps)]);
    } else {
        check(name == "SENTINEL");
        output_ += kPrimaries[how % std::size(kPrimaries)];
    }
}

/* Each request has two bits of `how`: what the answer is to it. */
std::string Server::answer_of_script(const ScriptCall &call, unsigned how)
{
    constexpr int64_t kAdmits[] = {2, 0, -1, 2};

    if (call.kind == ScriptCall::Kind::kSettles) {
        return number(1);
    }

    std::string numbers;

    for (const std::string &id : call.ids) {
        int64_t admits = kAdmits[how & 3];

        how = how >> 2 | (how & 3) << 6;

        for (size_t i = 0; i < call.limits; i++) {
            pack(admits, &numbers);
            pack(call.kind == ScriptCall::Kind::kAsks ? mark_of(id, i) : 0,
                 &numbers);
            pack(1000, &numbers);
        }

        if (call.kind == ScriptCall::Kind::kAsks) {
            ledger_.replied(id, Outcome::kFinal);
        }
    }

    pack(1000000000, &numbers);

    return bulk(numbers);
}

void Server::reply_with_error(unsigned which)
{
    if (!is_asked()) {
        return;
    }

    Words command = take_command();
    const Error &error = kErrors[which % std::size(kErrors)];
    std::string text = error.text;

    if (error.has_address) {
        unsigned slot =
            command.size() > 3 ? sl::cluster_slot(command[3]) : which;

        text +=
            " " + std::to_string(slot) + " "
            + kAddresses[which / std::size(kErrors) % std::size(kAddresses)];
    }

    output_ += "-" + text + "\r\n";
    ledger_.replied(command, error.outcome);
}

void Server::reply_with_text(const std::string &text)
{
    if (is_asked()) {
        if (take_command()[0].substr(0, 4) == "EVAL") {
            ledger_.lose_honesty();
        }

        output_ += bulk(text);
    }
}

void Server::reply_with_error_text(const std::string &text)
{
    if (is_asked()) {
        take_command();
        ledger_.lose_honesty();

        output_ += "-" + text + "\r\n";
    }
}

void Server::say(const std::string &bytes)
{
    /* more than the module reads of it; what is never heard takes memory, too
     */
    constexpr size_t kMostUnheard = 2 * 1024 * 1024;

    ledger_.lose_honesty();

    if (output_.size() < kMostUnheard) {
        output_ += bytes;
    }
}

void Server::speak(size_t most)
{
    if (!output_.empty()) {
        has_spoken_ = true;
        output_.erase(
            0, wire_->send(output_.substr(0, most == 0 ? output_.npos : most)));
    }
}

}  // namespace fuzz
