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

bool is_algorithm(const std::string &word)
{
    return word == "0" || word == "p" || is_number_of_buckets(word);
}

/* Only packed logs have to be told that ids are to be kept. */
bool is_rule(const std::string &rule, const std::string &algorithm)
{
    static const std::set<std::string> kRules = {"",  "d",  "n",  "dn",
                                                 "i", "di", "ni", "dni"};

    return kRules.count(rule) == 1
           && (rule.empty() || rule.back() != 'i' || algorithm == "p");
}

/* What "/0/p/i/6" says, each word behind its '/'. */
Words words_between_slashes(const std::string &text)
{
    Words words;

    for (char ch : text) {
        if (ch == '/') {
            words.emplace_back();
        } else {
            words.back() += ch;
        }
    }

    return words;
}

/* Of PREFIX:ZONE:CLIENT. */
std::string zone_of(const std::string &key)
{
    size_t ends = key.rfind(':');
    size_t begins = key.rfind(':', ends - 1) + 1;

    return key.substr(begins, ends - begins);
}

}  // namespace

ScriptCall::ScriptCall(const Words &command)
{
    if (command[0] == "EVAL" && command.size() > 4) {
        /* who only looks names one key */
        bool is_look = command[2] == "1";

        check(command.size() == (is_look ? 9 : 10));
        check(is_look ? command[4] == "look"
                      : command[2] == "2"
                            && sl::cluster_slot(command[3])
                                   == sl::cluster_slot(command[4]));
        check(is_algorithm(command[command.size() - 3]));

        kind = Kind::kIntervenes;
        ids = {"o" + command[command.size() - 2]};
        return;
    }

    if (command[0] == "EVAL") {
        check(command.size() == 4 && command[2] == "1");
        kind = Kind::kLooksUp;
        return;
    }

    if (command[0] != "EVALSHA") {
        return;
    }

    check(command.size() >= 5);

    size_t keys = std::stoul(command[2]);

    check(command.size() >= 3 + keys + 2);

    auto args = command.begin() + 3 + static_cast<long>(keys);
    size_t count = command.size() - 3 - keys;

    limits = keys;

    if (args[0][0] == '/') {
        Words algorithms = words_between_slashes(args[0]);

        for (const std::string &word : algorithms) {
            check(word == "i" || is_algorithm(word));
        }

        limits = algorithms.size();
        check(keys > 0 && keys % limits == 0);

        bool has_ids = std::any_of(
            algorithms.begin(), algorithms.end(),
            [](const std::string &word) { return word == "0" || word == "i"; });

        check(count == 1 + 2 * limits + (has_ids ? keys / limits : 0));

        kind = Kind::kAsks;
        is_short = true;
        ids.assign(args + 1 + 2 * static_cast<long>(limits), command.end());

        for (size_t i = 0; i < keys && !has_ids; i += limits) {
            ids.push_back(zone_of(command[3 + i]));
        }

        return;
    }

    check(count == 2 + 5 * limits);

    kind = args[0].empty()  ? Kind::kAsks
           : args[0] == "?" ? Kind::kProbe
                            : Kind::kSettles;
    ids = {args[1]};

    for (size_t i = 0; i < limits; i++) {
        auto limit = args + 2 + static_cast<long>(5 * i);
        const std::string &algorithm = limit[3];

        check(is_algorithm(algorithm) && is_rule(limit[4], algorithm));
        lowered_buckets += is_number_of_buckets(algorithm)
                           && std::stol(limit[1]) < std::stol(limit[2]);
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

/* What is not taken from buckets may be repeated. */
void Ledger::settling_sent(const ScriptCall &call)
{
    check(fates_.count(call.ids[0]) == 1);

    size_t &left = fates_[call.ids[0]].buckets_to_lower;

    check(!is_honest_ || call.lowered_buckets <= left);
    left -= std::min(left, call.lowered_buckets);
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
        fates_[call.ids[0]].buckets_to_lower += call.lowered_buckets;
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
    case Outcome::kUndecided:
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
    std::string text = "*" + std::to_string(6 + 4 * shown) + "\r\n"
                       + number(std::stol(id.substr(1))) + number(1000);

    text += number(how & 4 ? 3000 : 0);
    text += number(how & 8 ? 7 : 0) + number(how & 8 ? 2000 : 0);
    text += number(static_cast<int64_t>(shown) + (how & 16 ? 1 : 0));

    for (size_t i = 0; i < shown; i++) {
        text += number(static_cast<int64_t>(i)) + number(1)
                + number(how >> 5 & 1) + bulk(how & 64 ? "" : "an-id");
    }

    return text;
}

}  // namespace

/* Two bits of `how` say how many it finds, and two how much is left. */
std::string Server::answer_of_scan(const Words &command, unsigned how) const
{
    constexpr size_t kFound[] = {1, 0, 3, 150};

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
        std::string tag =
            ledger_.is_cluster() ? client : "rate_limit:zone:" + client;

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

    bool is_packed = call.is_short && (call.ids.size() > 1 || how < 128);
    std::string packed;
    std::string listed;
    size_t count = 0;

    auto add = [&](int64_t n) {
        pack(n, &packed);
        listed += number(n);
        count++;
    };

    for (const std::string &id : call.ids) {
        int64_t admits = kAdmits[how & 3];

        how = how >> 2 | (how & 3) << 6;

        for (size_t i = 0; i < call.limits; i++) {
            add(admits);
            add(call.kind == ScriptCall::Kind::kAsks ? mark_of(id, i) : 0);
            add(1000);
        }

        if (call.kind == ScriptCall::Kind::kAsks) {
            ledger_.replied(id,
                            admits < 0 ? Outcome::kUndecided : Outcome::kFinal);
        }
    }

    add(1000000000);

    return is_packed ? bulk(packed)
                     : "*" + std::to_string(count) + "\r\n" + listed;
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
