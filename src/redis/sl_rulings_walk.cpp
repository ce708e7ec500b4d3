#include "redis/sl_rulings_walk.h"

#include <new>

#include "redis/pure/sl_client_reply.h"
#include "redis/pure/sl_cluster_slot.h"

namespace sl {

namespace {

/* What one answer may take: so many steps, or about so many clients. */
constexpr size_t kMostSteps = 1000;
constexpr size_t kEnough = 100;

/* So many are under way at a time, so that whoever may look cannot keep a
 * server busy: each goes through all keys that it has. */
constexpr size_t kMostWalks = 8;

/* A step looks at about so many keys. */
constexpr int64_t kKeysPerStep = 1000;

/* What a cluster looks like is known in a moment, if it is not yet. */
constexpr ngx_msec_t kLookAgainMs = 10;

static_assert(kMaxReplyElements > 4 * kKeysPerStep, "some more may come");

/* What was ruled, by the clock that it was ruled by. */
constexpr std::string_view kLookUp =
    "local time = redis.call('TIME') "
    "return {time[1] .. string.format('%06d', time[2]),"
    " redis.pcall('GET', KEYS[1])}";

constexpr std::string_view kNonsense = "its answer to an operator is no answer";

}  // namespace

/* ---- a client that was found ---- */

class RulingsWalk::Found final : public ErrandReceiver {
  public:
    Found(RulingsWalk &walk, const IndexKey &name, Found *before_it) noexcept
        : next(before_it), walk_(walk), name_(name), call_(nullptr),
          is_ruled_(false), client_()
    {}

    ~Found()
    {
        if (call_ != nullptr) {
            call_->abandon(false);
        }
    }

    Found(const Found &) = delete;
    Found &operator=(const Found &) = delete;

    std::string_view name() const noexcept { return name_.view(); }

    bool look_up(ErrandFailure *failure) noexcept;

    bool is_ruled() const noexcept { return is_ruled_; }
    RuledClient client() const noexcept;

    Found *const next;

  private:
    bool replied(const redisReply &reply,
                 std::string_view server) noexcept override;
    void refused(StoreError error, std::string_view reason,
                 std::string_view server) noexcept override;
    void receive(const Answer &none) noexcept override;

    bool read(const redisReply &reply) noexcept;
    void ended() noexcept;

    RulingsWalk &walk_;
    const IndexKey name_;

    /* nullptr unless on its way. */
    RedisCall *call_;

    /* Something was, and has not ended. */
    bool is_ruled_;
    RuledClient client_;
};

bool RulingsWalk::Found::look_up(ErrandFailure *failure) noexcept
{
    char room[kLookUp.size() + sizeof(IndexKey::data)
              + 5 * CommandWriter::kAroundWord];
    CommandWriter command(room, 4);

    command.add("EVAL");
    command.add(kLookUp);
    command.add(1);
    command.add(name());

    call_ = walk_.desk_.send({room, command.size()}, cluster_slot(name()),
                             *this, failure);

    return call_ != nullptr;
}

void RulingsWalk::Found::ended() noexcept
{
    call_ = nullptr;
    walk_.on_their_way_--;
    walk_.go_on_later();
}

bool RulingsWalk::Found::replied(const redisReply &reply,
                                 std::string_view) noexcept
{
    bool makes_sense = read(reply);

    if (!makes_sense) {
        walk_.note(ErrandFailure(StoreError::kNonsense, kNonsense));
    }

    ended();

    return makes_sense;
}

/*
 * What is no ruling is no concern of ours, though its name looks like it. It
 * may also have ended since it was found.
 */
bool RulingsWalk::Found::read(const redisReply &reply) noexcept
{
    int64_t now;

    if (reply.type != REDIS_REPLY_ARRAY || reply.elements != 2
        || reply.element[0]->type != REDIS_REPLY_STRING
        || !read_time(text_of(reply.element[0]), &now))
    {
        return false;
    }

    const redisReply *text = reply.element[1];
    Ruling ruling;

    switch (text->type) {
    case REDIS_REPLY_STRING:
        is_ruled_ = read_ruling(text_of(text), &ruling)
                    && ruled_now(ruling, now, &client_);
        return true;

    case REDIS_REPLY_ERROR:
        if (text_of(text).substr(0, 9) != "WRONGTYPE") {
            OneLine why(text_of(text), walk_.desk_.settings());

            walk_.note(ErrandFailure(StoreError::kScript, why.text()));
        }

        return true;

    default:
        return text->type == REDIS_REPLY_NIL;
    }
}

void RulingsWalk::Found::refused(StoreError error, std::string_view reason,
                                 std::string_view) noexcept
{
    walk_.note(ErrandFailure(error, reason));
    ended();
}

void RulingsWalk::Found::receive(const Answer &none) noexcept
{
    walk_.note(ErrandFailure::no_reply(none.error));
    ended();
}

RuledClient RulingsWalk::Found::client() const noexcept
{
    RuledClient client = client_;

    client.key = client_of_index(name(), view(walk_.desk_.settings().prefix),
                                 walk_.zone(), walk_.desk_.key_style());

    return client;
}

/* ---- those that are under way ---- */

PendingQuestion *RulingsWalks::start(const ErrandDesk &desk,
                                     std::string_view zone,
                                     std::string_view cursor,
                                     OperatorReceiver &receiver) noexcept
{
    ScanPlace from;
    ErrandFailure failure(StoreError::kMemory, "out of memory");
    bool is_place =
        from.parse(cursor)
        && (desk.settings().topology == Topology::kCluster || from.slot == 0);
    bool are_many = size() >= kMostWalks;

    auto *walk = is_place && !are_many ? new (std::nothrow)
                         RulingsWalk(desk, zone, from, receiver, *this)
                                       : nullptr;

    if (walk != nullptr) {
        return walk->go_on() ? walk : nullptr;
    }

    if (are_many) {
        failure = ErrandFailure(StoreError::kOverload,
                                "too many of such lists are being made");
    }

    RulingsAnswer answer{};

    answer.is_cursor_wrong = !is_place;
    answer.error = failure.error();
    answer.reason = failure.reason();
    receiver.receive(answer);

    return nullptr;
}

size_t RulingsWalks::size() const noexcept
{
    size_t count = 0;

    for (const RulingsWalk *walk = first_; walk != nullptr;
         walk = walk->next_walk_) {
        count++;
    }

    return count;
}

void RulingsWalks::end() noexcept
{
    while (first_ != nullptr) {
        first_->fail(
            ErrandFailure(StoreError::kUnavailable, "this worker exits"));
    }
}

/* ---- one of them ---- */

RulingsWalk::RulingsWalk(const ErrandDesk &desk, std::string_view zone,
                         const ScanPlace &from, OperatorReceiver &receiver,
                         RulingsWalks &all) noexcept
    : desk_(desk), zone_(), zone_size_(zone.copy(zone_, sizeof(zone_))),
      receiver_(receiver), all_(all), next_walk_(all.first_), place_(from),
      is_on_server_(!from.is_at_start()), steps_(0),
      map_changes_(desk.routes().map_changes()), scan_(nullptr),
      found_(nullptr), count_(0), looked_up_(nullptr), on_their_way_(0),
      has_failed_(false), waits_since_(0),
      next_(Wakeup::calling<&RulingsWalk::wake>(this, Wakeup::kNeeded))
{
    all.first_ = this;
}

RulingsWalk::~RulingsWalk()
{
    RulingsWalk **link = &all_.first_;

    while (*link != this) {
        link = &(*link)->next_walk_;
    }

    *link = next_walk_;

    if (scan_ != nullptr) {
        scan_->abandon(false);
    }

    while (found_ != nullptr) {
        Found *next = found_->next;

        delete found_;
        found_ = next;
    }
}

bool RulingsWalk::go_on() noexcept
{
    if (!has_failed_ && scan_ == nullptr && on_their_way_ == 0
        && look_up_found() && on_their_way_ == 0)
    {
        begin_anew_if_map_changed();

        if (is_at_end() || has_enough()) {
            tell();
            return false;
        }

        scan();
    }

    if (has_failed_) {
        fail(failure_);
        return false;
    }

    return true;
}

/* Asks about those that the last step has found. Replies may come meanwhile, if
 * a connection turns out to be dead. False: that failed. */
bool RulingsWalk::look_up_found() noexcept
{
    ErrandFailure failure;

    for (Found *found = found_; found != looked_up_; found = found->next) {
        /* before it is sent: then it can come to an end */
        on_their_way_++;

        if (!found->look_up(&failure)) {
            on_their_way_--;
            note(failure);
            break;
        }
    }

    looked_up_ = found_;

    return !has_failed_;
}

bool RulingsWalk::is_at_end() const noexcept
{
    return !is_on_server_
           && desk_.routes().next_server(place_.slot) == kClusterSlots;
}

void RulingsWalk::begin_anew_if_map_changed() noexcept
{
    unsigned changes = desk_.routes().map_changes();

    if (is_at_end() && !has_enough() && changes != map_changes_) {
        map_changes_ = changes;
        place_ = ScanPlace();
    }
}

bool RulingsWalk::has_enough() const noexcept
{
    return steps_ >= kMostSteps || count_ >= kEnough;
}

/* The next step on this server, or the first on the next one. */
void RulingsWalk::scan() noexcept
{
    if (!is_on_server_) {
        place_.slot = desk_.routes().next_server(place_.slot);
    }

    if (!desk_.routes().knows_server(place_.slot)) {
        wait_for_server();
        return;
    }

    IndexKey pattern = index_pattern(view(desk_.settings().prefix), zone());
    char room[sizeof(pattern.data) + 6 * (CommandWriter::kAroundWord + 20)];
    CommandWriter command(room, 6);
    ErrandFailure failure;

    command.add("SCAN");
    command.add(place_.cursor());
    command.add("MATCH");
    command.add(pattern.view());
    command.add("COUNT");
    command.add(kKeysPerStep);

    waits_since_ = 0;
    is_on_server_ = true;
    steps_++;
    scan_ = desk_.send({room, command.size()}, place_.slot, *this, &failure);

    if (scan_ == nullptr) {
        note(failure);
    }
}

void RulingsWalk::wait_for_server() noexcept
{
    if (waits_since_ == 0) {
        waits_since_ = ngx_current_msec;
    }

    if (ngx_current_msec - waits_since_ < desk_.settings().timeout) {
        next_.after(kLookAgainMs);
        return;
    }

    char digits[kMaxDigits];
    ErrandFailure failure(StoreError::kUnavailable,
                          "it is not known which server has slot ");

    failure.add({digits, static_cast<size_t>(write_number(digits, place_.slot)
                                             - digits)});
    note(failure);
}

void RulingsWalk::note(const ErrandFailure &failure) noexcept
{
    if (!has_failed_) {
        has_failed_ = true;
        failure_ = failure;
    }
}

/* ---- what SCAN says ---- */

bool RulingsWalk::replied(const redisReply &reply, std::string_view) noexcept
{
    scan_ = nullptr;
    go_on_later();

    bool makes_sense = reply.type == REDIS_REPLY_ARRAY && reply.elements == 2
                       && reply.element[0]->type == REDIS_REPLY_STRING
                       && reply.element[1]->type == REDIS_REPLY_ARRAY
                       && place_.set_cursor(text_of(reply.element[0]));

    for (size_t i = 0; makes_sense && i < reply.element[1]->elements; i++) {
        const redisReply *name = reply.element[1]->element[i];

        makes_sense = name->type == REDIS_REPLY_STRING;

        if (makes_sense && !add(text_of(name))) {
            note(ErrandFailure(StoreError::kMemory, "out of memory"));
            break;
        }
    }

    if (!makes_sense) {
        note(ErrandFailure(StoreError::kNonsense, kNonsense));
    }

    /* this server has no more */
    if (place_.is_at_start()) {
        is_on_server_ = false;
        place_.slot++;
    }

    return makes_sense;
}

void RulingsWalk::refused(StoreError error, std::string_view reason,
                          std::string_view) noexcept
{
    scan_ = nullptr;
    note(ErrandFailure(error, reason));
    go_on_later();
}

void RulingsWalk::receive(const Answer &none) noexcept
{
    scan_ = nullptr;
    note(ErrandFailure::no_reply(none.error));
    go_on_later();
}

/* SCAN may say a name more than once, and names that are none of ours. False:
 * out of memory. */
bool RulingsWalk::add(std::string_view name) noexcept
{
    IndexKey copy;

    if (client_of_index(name, view(desk_.settings().prefix), zone(),
                        desk_.key_style())
            .empty()
        || has(name))
    {
        return true;
    }

    copy.size = name.copy(copy.data, sizeof(copy.data));

    auto *found = new (std::nothrow) Found(*this, copy, found_);

    if (found != nullptr) {
        found_ = found;
        count_++;
    }

    return found != nullptr;
}

bool RulingsWalk::has(std::string_view name) const noexcept
{
    for (const Found *found = found_; found != nullptr; found = found->next) {
        if (found->name() == name) {
            return true;
        }
    }

    return false;
}

/* ---- what the operator is told ---- */

void RulingsWalk::tell() noexcept
{
    std::unique_ptr<RuledClient[]> clients(new (std::nothrow)
                                               RuledClient[count_ + 1]);
    RulingsAnswer answer{};
    char cursor[ScanPlace::kMaxText];

    if (clients == nullptr) {
        fail(ErrandFailure(StoreError::kMemory, "out of memory"));
        return;
    }

    for (const Found *found = found_; found != nullptr; found = found->next) {
        if (found->is_ruled()) {
            clients[answer.count++] = found->client();
        }
    }

    answer.known = true;
    answer.clients = clients.get();

    if (!is_at_end()) {
        answer.cursor = {cursor, place_.write(cursor)};
    }

    receiver_.receive(answer);
    delete this;
}

void RulingsWalk::fail(const ErrandFailure &failure) noexcept
{
    RulingsAnswer answer{};

    answer.error = failure.error();
    answer.reason = failure.reason();
    receiver_.receive(answer);
    delete this;
}

}  // namespace sl
