/*
 * Servers that hear what the module sends, and can answer it: well, with one of
 * the errors that there are, or with anything.
 *
 * Whatever they answer, what the module sends must be well formed, and about
 * requests that were asked about. As long as they are honest (each command has
 * one reply, in its turn, that fits it) they also see to it that no request can
 * be counted twice.
 */

#pragma once

#include <deque>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "redis/network.h"

namespace fuzz {

using Words = std::vector<std::string>;

struct ScriptCall;

/* What the servers have been asked about each request, and have said. */
class Ledger {
  public:
    explicit Ledger(bool is_cluster) : is_cluster_(is_cluster) {}

    /* The module has been given a request with this id, and so many of its
     * limits are counted without it. */
    void expect(const std::string &id, size_t nameless = 0)
    {
        fates_[id] = Fate();
        fates_[id].nameless_to_lower = nameless;
    }

    void sent(const Words &command);

    enum class Outcome {
        kFinal, /* it is not to be sent again */
        kLater, /* as it was not executed, it may, if it settles something */
        kNoScript,
        kMoved,
        kTryAgain,
        kNotTogether,
    };

    /* To all of the command's requests, or to one of them. */
    void replied(const Words &command, Outcome outcome);
    void replied(const std::string &id, Outcome outcome);

    void lose_honesty() { is_honest_ = false; }
    bool is_honest() const { return is_honest_; }
    bool is_cluster() const { return is_cluster_; }

  private:
    struct Fate {
        bool may_be_sent = true;
        unsigned redirections = 0;
        unsigned without_script = 0;

        /* From how many of them may be taken, in one call or in several. */
        size_t nameless_to_lower = 0;
    };

    void settling_sent(const ScriptCall &call);

    bool is_cluster_;
    bool is_honest_ = true;
    std::map<std::string, Fate> fates_;
};

/* A command that calls the script, or the one that looks up rulings. */
struct ScriptCall {
    explicit ScriptCall(const Words &command);

    enum class Kind {
        kNone,
        kProbe,
        kAsks,
        kSettles,
        kIntervenes, /* about one client, for an operator */
        kLooksUp,    /* what was ruled */
    };

    Kind kind = Kind::kNone;
    size_t limits = 0;
    Words ids;

    /* From how many of those without ids it takes something. That may not be
     * repeated, as they do not know what was taken back. */
    size_t lowered_nameless = 0;

  private:
    using Word = Words::const_iterator;

    void read_errand(const Words &command);
    void read_check(const Words &command, Word keys, Word args);
    void read_settlement(const Words &command, Word keys, Word args);
    void read_probe(const Words &command, Word keys, Word args);
};

/* What an honest answer says about a limit, by which it is known whose it is.
 */
int64_t mark_of(const std::string &id, size_t limit);

class Server {
  public:
    Server(std::shared_ptr<Wire> wire, Ledger &ledger)
        : wire_(std::move(wire)), ledger_(ledger)
    {}

    /* Hears what has come. False: the connection is closed. */
    bool listen();

    /* From now on it does not, or does again. */
    void turn_away() { is_deaf_ = !is_deaf_; }

    bool is_asked() const { return !commands_.empty(); }

    /* Replies to the next command, if there is one: `how` it does so. */
    void reply_well(unsigned how);
    void reply_with_error(unsigned which);

    /* The same with words of somebody else. */
    void reply_with_text(const std::string &text);
    void reply_with_error_text(const std::string &text);

    /* Not a reply to anything. */
    void say(const std::string &bytes);

    void hang_up() { wire_->close(); }

    /* Sends so many bytes of what it has to say; 0: all. */
    void speak(size_t most);

    bool has_to_say() const { return !output_.empty(); }

  private:
    Words take_command();
    void check_modesty(const Words &command) const;
    std::string answer_of_script(const ScriptCall &call, unsigned how);
    std::string answer_of_scan(const Words &command, unsigned how) const;

    std::shared_ptr<Wire> wire_;
    Ledger &ledger_;
    bool is_deaf_ = false;
    bool has_spoken_ = false;
    std::string input_;
    std::string output_;
    std::deque<Words> commands_;
};

}  // namespace fuzz
