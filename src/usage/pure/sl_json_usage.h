/* Finds numbers in JSON that passes in pieces. */

#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "usage/pure/sl_usage_number.h"
#include "usage/pure/sl_usage_paths.h"

namespace sl {

/*
 * The key of a member, with its escapes decoded to UTF-8. Of one that no name
 * can equal, as it is too long or no Unicode, is just known that it is one.
 */
class JsonKey {
  public:
    void clear() noexcept
    {
        part_ = Part::kPlain;
        size_ = 0;
        surrogate_ = 0;
    }

    /* Takes what belongs to the key, up to the quote or the end of the piece;
     * returns how far it came. */
    const char *feed(const char *at, const char *end) noexcept;

    /* After the quote. Empty if no name can equal it. */
    std::string_view text() const noexcept;

  private:
    enum class Part : uint8_t { kPlain, kBackslash, kHexDigits };

    const char *take_plain(const char *at, const char *end) noexcept;
    const char *take_escape(const char *at) noexcept;
    const char *take_hex_digit(const char *at) noexcept;
    void add_code_unit() noexcept;
    void add_character(uint32_t code) noexcept;
    void add(std::string_view bytes) noexcept;
    void give_up() noexcept { size_ = kUnlike; }

    static constexpr uint8_t kUnlike = UsagePaths::kLongestName + 1;

    Part part_ = Part::kPlain;
    uint8_t hex_digits_ = 0; /* how many of an escape have been read */
    uint8_t size_ = 0;       /* kUnlike: no name can equal it */
    uint16_t code_unit_ = 0; /* these digits */
    uint16_t surrogate_ = 0; /* the first of a pair, or 0 */
    char bytes_[UsagePaths::kLongestName] = {};
};

/*
 * One document, or several after each other; the last that has a number counts,
 * and in it the first path that leads to one. An array that is a whole document
 * is a list of several, unless a path begins with an index.
 *
 * What paths lead through is read as RFC 8259 has it. From a fault on nothing
 * more is read, and what was found before it stays. Everything else is skipped
 * with no more care than it takes to find its end: words are of any letters,
 * and between brackets these are counted and not compared, so that nothing is
 * nested too deeply.
 */
class JsonUsage {
  public:
    enum class Documents : bool { kOne, kAny };

    JsonUsage(const UsagePaths &paths, Documents documents) noexcept
        : paths_(&paths), documents_(documents)
    {
        begin_document();
    }

    void feed(std::string_view piece) noexcept;

    /* What comes is another one, whatever is missing of this. */
    void end_document() noexcept;

    /* Also in the middle of a document: of what has been seen completely. */
    int64_t usage() const noexcept;

  private:
    using Set = UsagePaths::Set;

    /* What comes next, if not white space. */
    enum class State : uint8_t {
        kValue,
        kFirstElement, /* or the end of the array */
        kFirstKey,     /* or the end of the object */
        kKey,
        kInKey,
        kColon,
        kInString, /* that is no key */
        kInNumber, /* where a path leads */
        kInWord,   /* or a number elsewhere */
        kAfterValue,
        kAfterListed, /* a document of a list */
        kSkipping,
        kNothing, /* the document is at its end */
        kFault,   /* anything */
    };

    /* An object or array that paths lead into. */
    struct Level {
        uint64_t index = 0;
        Set paths = 0;
        bool is_array = false;
    };

    /* Each reads what its name says, as far as that is there, and returns
     * where it has come to. */
    const char *read_some(const char *at, const char *end) noexcept;
    const char *read_mark(const char *at, const char *end) noexcept;
    const char *read_value(const char *at, const char *end) noexcept;
    const char *read_first_element(const char *at, const char *end) noexcept;
    const char *read_first_key(const char *at, const char *end) noexcept;
    const char *read_key(const char *at, const char *end) noexcept;
    const char *skip_members(const char *at, const char *end) const noexcept;
    const char *read_in_key(const char *at, const char *end) noexcept;
    const char *read_colon(const char *at) noexcept;
    const char *read_in_string(const char *at, const char *end) noexcept;
    const char *read_in_number(const char *at, const char *end) noexcept;
    const char *read_in_word(const char *at, const char *end) noexcept;
    const char *read_after_value(const char *at) noexcept;
    const char *read_after_listed(const char *at) noexcept;
    const char *skip(const char *at, const char *end) noexcept;
    const char *skip_block(const char *bytes, size_t size) noexcept;

    void begin_document() noexcept;
    void keep_usage() noexcept;
    bool is_list() const noexcept;
    void end_list() noexcept;
    void begin_element(uint64_t index) noexcept;
    const char *begin_scalar(const char *at, const char *end) noexcept;
    void forget() noexcept;
    void enter(bool is_array) noexcept;
    void leave() noexcept;
    void end_key(std::string_view key) noexcept;
    void end_number() noexcept;
    void end_value() noexcept;
    const char *fail(const char *at) noexcept;
    uint64_t escaped_by(uint64_t backslashes, size_t size) noexcept;

    const UsagePaths *paths_;

    /* Of the last document that had one. */
    int64_t last_usage_ = kNoUsage;

    int64_t values_[UsagePaths::kMostPaths] =
        {}; /* where found_ has the path */
    Level levels_[UsagePaths::kMostNames];
    uint8_t depth_ = 0; /* how many of these there are */

    Set found_ = 0;
    Set leading_ = 0; /* the paths that lead to, or through, this value */

    State state_ = State::kValue;
    Documents documents_;
    bool is_in_list_ = false;
    bool is_escaped_ = false; /* the byte that comes */
    bool is_in_string_ = false;
    uint64_t brackets_ = 0; /* how many are open in what is skipped */
    UsageNumber number_;
    JsonKey key_;
};

}  // namespace sl
