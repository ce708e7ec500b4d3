/*
 * A worker with a store in Redis, those who ask it, and the servers that it
 * finds. Checks what must hold for each who asks, whatever the servers do.
 */

#pragma once

#include <list>
#include <memory>

#include "redis/nginx.h"
#include "redis/server.h"
#include "redis/sl_redis_store.h"

namespace fuzz {

/* A request that asks the store about its limits. */
class Question final : private sl::AnswerReceiver {
  public:
    /* `shape` says what its limits are. */
    Question(unsigned number, unsigned shape);

    const std::string &id() const { return id_; }

    /* How many of its limits are counted without its id. */
    size_t nameless() const;

    void ask(sl::Store &store, const Ledger &ledger);

    /* If it is still waiting: it does so no more. */
    void abandon(bool keep_provisional);

    /* If it was counted: this is what it has cost after all. */
    void settle(sl::Store &store, int64_t true_cost);

    bool is_waiting() const { return pending_ != nullptr; }

    void check_patience() const;

  private:
    sl::Query query() const;
    void receive(const sl::Answer &answer) noexcept override;
    void judge(const sl::Answer &answer);

    std::string id_;
    std::string key_;
    size_t limits_;
    bool is_mixed_;
    sl::LimitQuery limit_;

    const Ledger *ledger_ = nullptr;
    sl::PendingQuestion *pending_ = nullptr;
    ngx_msec_t asked_at_ = 0;
    bool is_asking_ = false;
    bool is_to_be_settled_ = false;
    int64_t counted_at_ = 0;
};

/* An operator who wants to know something, or to have it done. */
class Operator final : private sl::OperatorReceiver {
  public:
    explicit Operator(unsigned number) : number_(number) {}

    /* How the servers know an intervention, by the time that it is for. */
    std::string id() const { return "o" + std::to_string(number_); }

    /* `shape` says what is to be done, and about whom. */
    void intervene(sl::Store &store, const Ledger &ledger, unsigned shape);
    void list_rulings(sl::Store &store, const std::string &cursor);

    /* If something is still to come: it is not wanted any more. */
    void abandon();

    bool is_waiting() const { return pending_ != nullptr; }

    /* What the last list ended with. */
    const std::string &cursor() const { return cursor_; }

    void check_patience() const;

  private:
    void receive(const sl::ClientAnswer &answer) noexcept override;
    void receive(const sl::RulingsAnswer &answer) noexcept override;

    void began(sl::PendingQuestion *pending);
    void ended(bool is_known, std::string_view reason);

    unsigned number_;
    const Ledger *ledger_ = nullptr;
    sl::PendingQuestion *pending_ = nullptr;
    ngx_msec_t asked_at_ = 0;
    bool is_told_ = false;

    /* Each step of a list has a time of its own. */
    bool has_one_step_ = false;
    std::string cursor_;
};

class Scene {
  public:
    /* `settings` says what the configuration is like. */
    explicit Scene(unsigned settings);

    /* The worker exits, and everything has to have an end. */
    ~Scene();

    Scene(const Scene &) = delete;
    Scene &operator=(const Scene &) = delete;

    void ask(unsigned shape);

    void intervene(unsigned shape);
    void list_rulings(const std::string &cursor);

    /* As question() does. */
    Operator *an_operator(unsigned which);

    /* The first of those that were asked, the second …, and again from the
     * first; nullptr: there are none. */
    Question *question(unsigned which);

    sl::Store &store() { return store_; }

    /* A turn of the event loop: servers say what they have to say, so many
     * bytes of it (0: all), and hear what comes of it. */
    void turn(size_t most_bytes, Pace pace = Pace::kOrdinary);

    /* One of those that are connected to; nullptr: there are none. */
    Server *server(unsigned which);

    /* All servers answer well until they have nothing left to do. */
    void settle();

  private:
    static sl::RedisSettings settings_for(unsigned settings);

    Operator &add_operator();
    void meet_servers();
    void check_memory() const;

    sl::RedisSettings settings_;
    sl::RedisStore store_;
    Ledger ledger_;
    size_t memory_at_start_;

    /* How many wires have a server already. */
    size_t met_ = 0;
    std::list<Server> servers_;
    std::vector<std::unique_ptr<Question>> questions_;
    std::vector<std::unique_ptr<Operator>> operators_;
};

}  // namespace fuzz
