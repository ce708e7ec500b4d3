/*
 * The call of the script by which the module finds out whether a server counts:
 * an ordinary check, with a window of its own that is soon over.
 */

#pragma once

#include "redis/pure/sl_key.h"
#include "redis/sl_redis_command.h"
#include "redis/sl_redis_script.h"

namespace sl {

constexpr std::string_view kProbeId = "probe";
constexpr int64_t kProbeWindowUs = 100000;
constexpr int64_t kProbeMax = 1000000;

/* The call by which a connection's set-up ends. */
class ProbeCommand {
  public:
    static constexpr size_t kMaxKeys = 2;

    ProbeCommand(const RedisKey *keys, size_t count) noexcept
        : text_(), size_(0)
    {
        CommandWriter command(text_, kWords + count * kWordsPerKey);

        command.add("EVALSHA");
        command.add(script_sha());
        command.add(static_cast<int64_t>(count));

        for (size_t i = 0; i < count; i++) {
            command.add(keys[i].view());
        }

        /* what is asked of the script; lua/sliding_window.lua says what else
         * there is */
        command.add("");
        command.add(kProbeId);

        for (size_t i = 0; i < count; i++) {
            command.add(kProbeWindowUs);
            command.add(kProbeMax);
            command.add(int64_t{1});
            command.add(int64_t{0});
            command.add("");
        }

        size_ = command.size();
    }

    const char *text() const noexcept { return text_; }
    size_t size() const noexcept { return size_; }

  private:
    static constexpr size_t kWords = 5;
    static constexpr size_t kWordsPerKey = 6;

    /* Apart from keys, no word is longer than the script's digest. */
    static constexpr size_t kMaxWord = 40;

    char text_[(kWords + kMaxKeys * kWordsPerKey + 1)
                   * (CommandWriter::kAroundWord + kMaxWord)
               + kMaxKeys * sizeof(RedisKey::data)];
    size_t size_;
};

}  // namespace sl
