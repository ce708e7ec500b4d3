/* What each kind of error reply from Redis is taken for. */

#include "redis/pure/sl_redis_error.h"

#include <initializer_list>

#include "unit.h"

namespace {

using sl::RedisError;
using Messages = std::initializer_list<std::string_view>;

void assert_kind(RedisError expected, Messages messages)
{
    for (std::string_view message : messages) {
        RedisError kind = sl::classify_redis_error(message);

        if (kind != expected) {
            fail_msg("\"%.*s\" is of kind %d, not %d",
                     static_cast<int>(message.size()), message.data(),
                     static_cast<int>(kind), static_cast<int>(expected));
        }
    }
}

void a_missing_script_is_told_from_all_else(void **)
{
    assert_kind(RedisError::kNoScript,
                {"NOSCRIPT No matching script. Please use EVAL.", "NOSCRIPT"});
}

void a_redis_that_serves_nobody_is_unavailable(void **)
{
    assert_kind(
        RedisError::kUnavailable,
        {
            "LOADING Redis is loading the dataset in memory",
            "OOM command not allowed when used memory > 'maxmemory'.",
            "READONLY You can't write against a read only replica.",
            "BUSY Redis is busy running a script. You can only call SCRIPT "
            "KILL or SHUTDOWN NOSAVE.",
            "MISCONF Redis is configured to save RDB snapshots, but it's "
            "currently unable to persist to disk.",
            "NOREPLICAS Not enough good replicas to write.",
            "MASTERDOWN Link with MASTER is down and replica-serve-stale-data "
            "is set to 'no'.",
            "CLUSTERDOWN The cluster is down",
        });
}

void wrong_or_missing_rights_are_forbidden(void **)
{
    assert_kind(
        RedisError::kForbidden,
        {
            "NOAUTH Authentication required.",
            "WRONGPASS invalid username-password pair or user is disabled.",
            "NOPERM this user has no permissions to run the 'evalsha' command",
        });
}

void the_first_word_alone_is_enough(void **)
{
    assert_kind(RedisError::kUnavailable,
                {"LOADING", "OOM", "READONLY", "BUSY", "MISCONF", "NOREPLICAS",
                 "MASTERDOWN", "CLUSTERDOWN", "OOM "});
    assert_kind(RedisError::kForbidden, {"NOAUTH", "WRONGPASS", "NOPERM"});
}

void another_server_has_the_key(void **)
{
    assert_kind(RedisError::kElsewhere,
                {
                    "MOVED 3999 127.0.0.1:6381",
                    "ASK 3999 127.0.0.1:6381",
                    "TRYAGAIN Multiple keys request during rehashing of slot",
                });
}

void any_other_error_is_about_this_call(void **)
{
    assert_kind(RedisError::kThisCall,
                {
                    "ERR unknown command 'ZADD'",
                    "ERR unknown command 'AUTH', with args beginning with: "
                    "'SCRIPT' ",
                    "ERR unknown command",
                    "ERR unknown command ",
                    "ERR unknown command '",
                    "ERR unknown command ''",
                    "ERR unknown command 'SCRIPT",
                    "ERR unknown command 'SCRIPTS'",
                    "ERR unknown subcommand 'LOAD'. Try SCRIPT HELP.",
                    "ERR Error running script: SCRIPT",
                    "ERR",
                    "WRONGTYPE Operation against a key holding the wrong kind "
                    "of value",
                });
}

void a_server_without_scripting_is_told_from_all_else(void **)
{
    assert_kind(
        RedisError::kNoScripting,
        {
            "ERR unknown command 'SCRIPT', with args beginning with: 'LOAD' "
            "'return 1' ",
            "ERR unknown command `SCRIPT`, with args beginning with: `LOAD`, ",
            "ERR unknown command 'EVALSHA', with args beginning with: ",
            "ERR unknown command 'EVALSHA'",
            "ERR unknown command 'evalsha'",
            "ERR unknown command script",
            "ERR unknown command script or so",
            "ERR Could not find scripting engine 'lua'",
        });
}

void an_empty_message_is_about_this_call(void **)
{
    assert_kind(RedisError::kThisCall, {"", std::string_view{}, " "});
}

void a_word_that_only_begins_like_a_known_one_is_not_it(void **)
{
    assert_kind(RedisError::kThisCall,
                {"BUSYGROUP Consumer Group name already exists",
                 "BUSYKEY Target key name already exists.", "NOSCRIPTS",
                 "OOM: out of memory", "NOAUTH\tAuthentication required."});
}

void the_beginning_of_a_known_word_is_not_it(void **)
{
    assert_kind(RedisError::kThisCall,
                {"NOSCRIP", "NO", "L", "OO", "CLUSTER DOWN", "NOPER M"});
}

void keys_of_different_slots_are_told_from_all_else(void **)
{
    assert_kind(
        RedisError::kCrossSlot,
        {"CROSSSLOT Keys in request don't hash to the same slot", "CROSSSLOT"});
}

void only_the_first_word_counts(void **)
{
    assert_kind(RedisError::kThisCall,
                {"ERR NOSCRIPT", "ERR Error running script: -OOM", " NOAUTH",
                 "ERR LOADING"});
    assert_kind(RedisError::kNoScript, {"NOSCRIPT NOAUTH OOM"});
    assert_kind(RedisError::kUnavailable, {"OOM NOSCRIPT"});
}

void case_counts(void **)
{
    assert_kind(RedisError::kThisCall,
                {"noscript No matching script.", "Loading", "noauth"});
}

void the_message_ends_where_its_size_says(void **)
{
    std::string_view text = "BUSYGROUP";

    assert_kind(RedisError::kUnavailable, {text.substr(0, 4)});
    assert_kind(RedisError::kThisCall, {text.substr(0, 3), text.substr(0, 5)});
}

}  // namespace

int main()
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(a_missing_script_is_told_from_all_else),
        cmocka_unit_test(a_redis_that_serves_nobody_is_unavailable),
        cmocka_unit_test(wrong_or_missing_rights_are_forbidden),
        cmocka_unit_test(the_first_word_alone_is_enough),
        cmocka_unit_test(another_server_has_the_key),
        cmocka_unit_test(any_other_error_is_about_this_call),
        cmocka_unit_test(a_server_without_scripting_is_told_from_all_else),
        cmocka_unit_test(an_empty_message_is_about_this_call),
        cmocka_unit_test(a_word_that_only_begins_like_a_known_one_is_not_it),
        cmocka_unit_test(the_beginning_of_a_known_word_is_not_it),
        cmocka_unit_test(keys_of_different_slots_are_told_from_all_else),
        cmocka_unit_test(only_the_first_word_counts),
        cmocka_unit_test(case_counts),
        cmocka_unit_test(the_message_ends_where_its_size_says),
    };

    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
