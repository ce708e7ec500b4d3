#include "redis/scene.h"

#include <algorithm>
#include <csignal>

#include "fuzz.h"

/* The sanitizer's; gcc has it, but no header for it. */
extern "C" size_t __sanitizer_get_current_allocated_bytes();

namespace fuzz {

namespace {

/* More than a few replies, each of which may be as large as the module reads.
 */
constexpr size_t kMostMemory = 8 * 1024 * 1024;

/* No host is called like that: the names of servers are in the log. */
constexpr std::string_view kPassword = "s3cret!";
constexpr std::string_view kSentinelPassword = "h1dden!";

constexpr ngx_msec_t kTimeout = 100;

ngx_str_t text(const char *literal)
{
    return sl::str(literal);
}

/* Of the scene that is on. */
const sl::RedisSettings *settings_now;

bool has_password(std::string_view text)
{
    auto has = [&](const sl::RedisLogin &login) {
        return login.password != nullptr
               && text.find(login.password->text()) != text.npos;
    };

    return has(settings_now->login) || has(settings_now->sentinel_login);
}

bool is_one_line(std::string_view text)
{
    return std::none_of(text.begin(), text.end(), [](unsigned char ch) {
        return ch < 0x20 || ch == 0x7f;
    });
}

}  // namespace

void logged(std::string_view line)
{
    check(!has_password(line));
    check(is_one_line(line));
}

/* ---- those who ask ---- */

namespace {

constexpr sl::Algorithm kAlgorithms[] = {
    sl::Algorithm::kLog, sl::Algorithm::kPacked, sl::Algorithm::kBuckets};

void set_algorithm(sl::Algorithm algorithm, sl::LimitQuery *limit)
{
    limit->algorithm = algorithm;
    limit->buckets = algorithm == sl::Algorithm::kBuckets ? 10 : 0;
}

/* If all limits of a question have the same. */
sl::Algorithm algorithm_of(unsigned shape)
{
    return (shape & 7) == 6   ? sl::Algorithm::kBuckets
           : (shape & 7) == 4 ? sl::Algorithm::kPacked
                              : sl::Algorithm::kLog;
}

}  // namespace

/* Ids sort as numbers do: the servers read them, too. */
Question::Question(unsigned number, unsigned shape)
    : id_("q" + std::to_string(number)),
      key_("client" + std::to_string(shape >> 6)),
      limits_(shape & 1 ? 1 + (shape >> 1 & 3) * 5 : 1),
      is_mixed_((shape & 0x11) == 0x11), limit_()
{
    limit_.zone = "zone";
    limit_.window_us = 1000000;
    limit_.max = 10;
    limit_.cost = 1;
    limit_.provisional = shape & 8;
    limit_.is_settled_later = (shape & 0x28) == 0x20;
    limit_.counts_refused = (shape & 0x11) == 0x10;
    limit_.dry_run = (shape & 0x21) == 0x20;
    set_algorithm(algorithm_of(shape), &limit_);
}

sl::Query Question::query() const
{
    sl::Query query{};

    query.id = id_;
    query.first_key = key_;
    query.count = limits_;

    for (size_t i = 0; i < limits_; i++) {
        query.limits[i] = limit_;
        query.limits[i].key = key_;
        query.limits[i].max += static_cast<int64_t>(i);

        if (is_mixed_) {
            set_algorithm(kAlgorithms[i % std::size(kAlgorithms)],
                          &query.limits[i]);
        }
    }

    /* where its id is not sent, the zone says it */
    bool has_log = std::any_of(
        query.limits, query.limits + limits_, [](const sl::LimitQuery &limit) {
            return limit.algorithm == sl::Algorithm::kLog;
        });

    for (size_t i = 0; i < limits_ && !has_log; i++) {
        query.limits[i].zone = id_;
    }

    return query;
}

size_t Question::nameless() const
{
    sl::Query asked = query();

    return static_cast<size_t>(std::count_if(
        asked.limits, asked.limits + limits_, [](const sl::LimitQuery &limit) {
            return limit.algorithm != sl::Algorithm::kLog;
        }));
}

void Question::ask(sl::Store &store, const Ledger &ledger)
{
    sl::Answer answer = sl::Answer::none(sl::StoreError::kDown);

    ledger_ = &ledger;
    asked_at_ = ngx_current_msec;

    is_asking_ = true;
    pending_ = store.ask(query(), *this, &answer);
    is_asking_ = false;

    if (pending_ == nullptr) {
        judge(answer);
    }
}

void Question::receive(const sl::Answer &answer) noexcept
{
    /* once, while it waits, and never from inside ask() */
    check(is_waiting() && !is_asking_);

    pending_ = nullptr;
    judge(answer);
}

void Question::judge(const sl::Answer &answer)
{
    if (!answer.known) {
        return;
    }

    check(answer.time_us >= 0);

    for (size_t i = 0; i < limits_; i++) {
        const sl::LimitState &state = answer.states[i];

        check(state.wait_us >= 0 && !(state.is_counted && !state.admits));

        check(state.used >= 0);
        check(!ledger_->is_honest() || state.used == mark_of(id_, i));
    }

    is_to_be_settled_ = answer.states[0].is_counted;
    counted_at_ = answer.time_us;
}

void Question::abandon(bool keep_provisional)
{
    if (is_waiting()) {
        std::exchange(pending_, nullptr)->abandon(keep_provisional);
    }
}

void Question::settle(sl::Store &store, int64_t true_cost)
{
    if (!std::exchange(is_to_be_settled_, false)) {
        return;
    }

    sl::Query settled = query();

    for (size_t i = 0; i < limits_; i++) {
        settled.limits[i].true_cost = true_cost;
    }

    store.settle(settled, counted_at_);
}

void Question::check_patience() const
{
    check(!is_waiting() || ngx_current_msec - asked_at_ < kTimeout);
}

/* ---- operators ---- */

void Operator::intervene(sl::Store &store, const Ledger &ledger, unsigned shape)
{
    constexpr sl::Act kActs[] = {sl::Act::kLook, sl::Act::kForget,
                                 sl::Act::kBan, sl::Act::kOverride};

    std::string key = "client" + std::to_string(shape >> 6);
    sl::Intervention intervention;
    sl::LimitQuery client{};

    client.zone = "zone";
    client.key = key;
    client.window_us = 1000000;
    set_algorithm(kAlgorithms[shape & 4 ? 2 : shape >> 3 & 1], &client);
    intervention.act = kActs[shape & 3];
    intervention.for_us = number_;
    intervention.max = 7;

    ledger_ = &ledger;
    has_one_step_ = true;
    began(store.intervene(client, intervention, *this));
}

void Operator::list_rulings(sl::Store &store, const std::string &cursor)
{
    began(store.list_rulings("zone", cursor, *this));
}

/* It may have been told before it knows what it waits for. */
void Operator::began(sl::PendingQuestion *pending)
{
    check(is_told_ == (pending == nullptr));

    pending_ = pending;
    asked_at_ = ngx_current_msec;
}

void Operator::ended(bool is_known, std::string_view reason)
{
    check(!std::exchange(is_told_, true));
    check(is_known || (!has_password(reason) && is_one_line(reason)));

    pending_ = nullptr;
}

void Operator::receive(const sl::ClientAnswer &answer) noexcept
{
    ended(answer.known, answer.reason);

    if (!answer.known) {
        return;
    }

    const sl::Standing &standing = answer.standing;

    check(!answer.server.empty());
    check(answer.stored_as.substr(0, 15) == "rate_limit:zone");
    check(standing.used >= 0 && standing.wait_us >= 0);
    check(standing.ban_left_us >= 0 && standing.max_left_us >= 0);
    check(standing.shown <= sl::Standing::kMostShown);
    check(!ledger_->is_honest() || standing.used == number_);

    for (size_t i = 0; i < standing.shown; i++) {
        check(standing.requests[i].id_text().size() <= sl::kUuidSize);
        check(standing.requests[i].ago_us >= 0);
    }
}

void Operator::receive(const sl::RulingsAnswer &answer) noexcept
{
    std::set<std::string> keys;

    ended(answer.known, answer.reason);
    check(answer.known || (answer.count == 0 && answer.cursor.empty()));

    for (size_t i = 0; i < answer.count; i++) {
        const sl::RuledClient &client = answer.clients[i];

        check(keys.emplace(client.key).second && !client.key.empty());
        check(is_one_line(client.key));
        check(client.ban_left_us > 0
              || (client.max > 0 && client.max_left_us > 0));
    }

    cursor_ = answer.cursor;
}

void Operator::abandon()
{
    if (is_waiting()) {
        std::exchange(pending_, nullptr)->abandon(false);
        is_told_ = true;
    }
}

void Operator::check_patience() const
{
    check(!is_waiting() || !has_one_step_
          || ngx_current_msec - asked_at_ < kTimeout);
}

/* ---- the configuration ---- */

sl::RedisSettings Scene::settings_for(unsigned settings)
{
    static const sl::RedisEndpoint kServers[] = {{text("127.0.0.1"), 7000},
                                                 {text("127.0.0.1"), 7001}};
    static const sl::RedisEndpoint kSocket[] = {{text("/redis.sock"), 0}};

    constexpr sl::Topology kTopologies[] = {
        sl::Topology::kSingle, sl::Topology::kSentinel, sl::Topology::kCluster,
        sl::Topology::kSingle};

    sl::RedisSettings s{};
    bool is_socket = (settings & 3) == 3;

    s.name = text("redis://fuzz");
    s.topology = kTopologies[settings & 3];
    s.endpoints = is_socket ? kSocket : kServers;
    s.endpoint_count = is_socket ? 1 : 2;
    s.resolver = settings & 4 ? resolver() : nullptr;
    s.primary = text("primary");
    s.prefix = text("rate_limit");
    s.timeout = kTimeout;
    s.connect_timeout = 200;
    s.connections = settings & 8 ? 2 : 1;

    if (settings & 16) {
        static sl::RedisPassword password(sl::str(kPassword), text(""));
        static sl::RedisPassword other(sl::str(kSentinelPassword), text(""));

        s.login = {settings & 32 ? text("user") : text(""), &password};
        s.sentinel_login = {text(""), &other};
        s.db = 1;
    }

    return s;
}

Scene::Scene(unsigned settings)
    : settings_(settings_for(settings)), store_(settings_),
      ledger_(settings_.topology == sl::Topology::kCluster),
      memory_at_start_(__sanitizer_get_current_allocated_bytes())
{
    ngx_conf_t cf{};

    signal(SIGPIPE, SIG_IGN);
    set_welcome(Welcome::kOpen);
    set_narrow(settings & 64);
    start_worker();
    settings_now = &settings_;

    check(store_.share(&cf, settings_.name));
    check(shared_memory().init(&shared_memory(), nullptr) == NGX_OK);
    store_.start();
    meet_servers();
}

Scene::~Scene()
{
    sl::Outage outage;

    for (size_t place = 0; store_.next_outage(&place, &outage);) {
        check(!has_password(outage.reason()) && is_one_line(outage.reason()));
    }

    store_.stop();

    for (const auto &question : questions_) {
        check(!question->is_waiting());
    }

    for (const auto &each : operators_) {
        check(!each->is_waiting());
    }

    check_worker_is_done();

    for (Server &server : servers_) {
        /* deaf ones, too */
        server.hang_up();
    }

    wires().clear();
}

/* ---- what happens ---- */

void Scene::ask(unsigned shape)
{
    auto number = static_cast<unsigned>(questions_.size());

    questions_.push_back(std::make_unique<Question>(number, shape));
    ledger_.expect(questions_.back()->id(), questions_.back()->nameless());
    questions_.back()->ask(store_, ledger_);
}

Question *Scene::question(unsigned which)
{
    return questions_.empty() ? nullptr
                              : questions_[which % questions_.size()].get();
}

Operator &Scene::add_operator()
{
    auto number = static_cast<unsigned>(operators_.size());

    operators_.push_back(std::make_unique<Operator>(number));
    ledger_.expect(operators_.back()->id());

    return *operators_.back();
}

void Scene::intervene(unsigned shape)
{
    add_operator().intervene(store_, ledger_, shape);
}

void Scene::list_rulings(const std::string &cursor)
{
    add_operator().list_rulings(store_, cursor);
}

Operator *Scene::an_operator(unsigned which)
{
    return operators_.empty() ? nullptr
                              : operators_[which % operators_.size()].get();
}

void Scene::meet_servers()
{
    for (; met_ < wires().size(); met_++) {
        servers_.emplace_back(wires()[met_], ledger_);
    }

    servers_.remove_if([](Server &server) { return !server.listen(); });
}

void Scene::turn(size_t most_bytes, Pace pace)
{
    for (Server &server : servers_) {
        server.speak(most_bytes);
    }

    fuzz::turn(pace);
    meet_servers();
    check_memory();

    for (const auto &question : questions_) {
        question->check_patience();
    }

    for (const auto &each : operators_) {
        each->check_patience();
    }
}

Server *Scene::server(unsigned which)
{
    if (servers_.empty()) {
        return nullptr;
    }

    auto server = servers_.begin();

    std::advance(server, which % servers_.size());

    return &*server;
}

void Scene::settle()
{
    constexpr int kMostTurns = 16;

    for (int i = 0; i < kMostTurns; i++) {
        bool has_work = false;

        turn(0);

        for (Server &server : servers_) {
            while (server.is_asked()) {
                server.reply_well(0);
            }

            has_work |= server.has_to_say();
        }

        /* a connection takes a turn or two to open */
        if (!has_work && i > 2) {
            return;
        }
    }
}

void Scene::check_memory() const
{
    check(__sanitizer_get_current_allocated_bytes()
          < memory_at_start_ + kMostMemory);
}

}  // namespace fuzz
