/*
 * The store that counts in this nginx's own shared memory: exact for all its
 * workers, and still there after a reload. Answers at once.
 */

#pragma once

#include "sl_nginx.h"
#include "sl_store.h"

namespace sl {

class MemoryStore final : public Store {
  public:
    /* nullptr, with a message, if that cannot be. */
    static MemoryStore *create(ngx_conf_t *cf, size_t size) noexcept;

    std::string_view kind() const noexcept override { return "memory"; }
    PendingQuestion *ask(const Query &query, AnswerReceiver &receiver,
                         Answer *answer) noexcept override;
    void take_back(const Query &query, int64_t time_us) noexcept override;
    void start() noexcept override {}
    void stop() noexcept override {}

  private:
    class Locked;

    explicit MemoryStore(ngx_shm_zone_t *zone) noexcept;

    void report(uint64_t evictions, bool is_full) noexcept;

    static ngx_int_t init(ngx_shm_zone_t *zone, void *old) noexcept;

    ngx_shm_zone_t *zone_;

    /* What the log has been told of, and when. */
    uint64_t reported_evictions_;
    ngx_msec_t reported_at_;
};

}  // namespace sl
