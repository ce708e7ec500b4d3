#include "usage/pure/sl_json_usage.h"

#include <algorithm>
#include <cstring>

#include "base/pure/sl_words.h"
#include "usage/pure/sl_byte_masks.h"

namespace sl {

namespace {

bool is_white_space(char ch)
{
    /* mostly it is none, and this says so at once */
    return static_cast<unsigned char>(ch) <= ' '
           && (ch == ' ' || ch == '\n' || ch == '\r' || ch == '\t');
}

const char *skip_white_space(const char *at, const char *end)
{
    while (at != end && is_white_space(*at)) {
        at++;
    }

    return at;
}

bool is_letter(char ch)
{
    return static_cast<unsigned char>((ch | 0x20) - 'a') < 26;
}

/* Of a number, too. */
bool is_part_of_word(char ch)
{
    return is_letter(ch) || (ch >= '0' && ch <= '9') || ch == '-' || ch == '+'
           || ch == '.';
}

bool ends_number(char ch)
{
    return ch == ',' || ch == '}' || ch == ']' || is_white_space(ch);
}

/* Returns where it ends, or something where it cannot. */
const char *skip_simple_value(const char *at, const char *end)
{
    if (at != end && *at == '"') {
        at = find_either(at + 1, end, '"', '\\');

        return at != end && *at == '"' ? at + 1 : end;
    }

    const char *begin = at;

    while (at != end && is_part_of_word(*at)) {
        at++;
    }

    return at != begin ? at : end;
}

}  // namespace

/* --- JsonKey --- */

const char *JsonKey::feed(const char *at, const char *end) noexcept
{
    while (at != end) {
        switch (part_) {
        case Part::kPlain:
            if (*at == '"') {
                return at;
            }

            at = take_plain(at, end);
            break;
        case Part::kBackslash:
            at = take_escape(at);
            break;
        case Part::kHexDigits:
            at = take_hex_digit(at);
            break;
        }
    }

    return at;
}

const char *JsonKey::take_plain(const char *at, const char *end) noexcept
{
    const char *to = find_either(at, end, '"', '\\');

    if (to != at) {
        add({at, static_cast<size_t>(to - at)});
    }

    if (to != end && *to == '\\') {
        part_ = Part::kBackslash;
        to++;
    }

    return to;
}

const char *JsonKey::take_escape(const char *at) noexcept
{
    constexpr std::string_view kShort = "\"\\/bfnrt";
    constexpr std::string_view kMeant = "\"\\/\b\f\n\r\t";

    if (*at == 'u') {
        part_ = Part::kHexDigits;
        hex_digits_ = 0;
        code_unit_ = 0;
        return at + 1;
    }

    size_t which = kShort.find(*at);

    part_ = Part::kPlain;

    if (which == std::string_view::npos) {
        give_up();
    } else {
        add(kMeant.substr(which, 1));
    }

    return at + 1;
}

const char *JsonKey::take_hex_digit(const char *at) noexcept
{
    int digit = hex_digit(*at);

    if (digit < 0) {
        /* which may be the quote */
        part_ = Part::kPlain;
        give_up();
        return at;
    }

    code_unit_ = static_cast<uint16_t>(code_unit_ << 4 | digit);
    hex_digits_++;

    if (hex_digits_ == 4) {
        part_ = Part::kPlain;
        add_code_unit();
    }

    return at + 1;
}

void JsonKey::add_code_unit() noexcept
{
    bool is_first = code_unit_ >= 0xd800 && code_unit_ < 0xdc00;
    bool is_second = code_unit_ >= 0xdc00 && code_unit_ < 0xe000;

    if (is_second != (surrogate_ != 0)) {
        give_up();
    } else if (is_first) {
        surrogate_ = code_unit_;
    } else if (is_second) {
        uint32_t high = surrogate_ - 0xd800U;

        surrogate_ = 0;
        add_character(0x10000 + (high << 10) + (code_unit_ - 0xdc00U));
    } else {
        add_character(code_unit_);
    }
}

void JsonKey::add_character(uint32_t code) noexcept
{
    auto byte = [code](uint32_t mark, unsigned shift, uint32_t bits) {
        return static_cast<char>(mark | (code >> shift & bits));
    };

    if (code < 0x80) {
        const char bytes[] = {byte(0, 0, 0x7f)};
        add({bytes, sizeof(bytes)});
    } else if (code < 0x800) {
        const char bytes[] = {byte(0xc0, 6, 0x1f), byte(0x80, 0, 0x3f)};
        add({bytes, sizeof(bytes)});
    } else if (code < 0x10000) {
        const char bytes[] = {byte(0xe0, 12, 0xf), byte(0x80, 6, 0x3f),
                              byte(0x80, 0, 0x3f)};
        add({bytes, sizeof(bytes)});
    } else {
        const char bytes[] = {byte(0xf0, 18, 0x7), byte(0x80, 12, 0x3f),
                              byte(0x80, 6, 0x3f), byte(0x80, 0, 0x3f)};
        add({bytes, sizeof(bytes)});
    }
}

void JsonKey::add(std::string_view bytes) noexcept
{
    if (surrogate_ != 0 || size_ == kUnlike
        || bytes.size() > UsagePaths::kLongestName - size_)
    {
        give_up();
        return;
    }

    std::copy(bytes.begin(), bytes.end(), bytes_ + size_);
    size_ = static_cast<uint8_t>(size_ + bytes.size());
}

std::string_view JsonKey::text() const noexcept
{
    return size_ == kUnlike || surrogate_ != 0
               ? std::string_view()
               : std::string_view(bytes_, size_);
}

/* --- JsonUsage --- */

void JsonUsage::feed(std::string_view piece) noexcept
{
    const char *at = piece.data();
    const char *end = at + piece.size();

    while (at != end) {
        at = read_some(at, end);
    }
}

/* What a value leads to has another one now: whatever was found in one that had
 * the same key before no longer counts. */
inline void JsonUsage::forget() noexcept
{
    found_ &= static_cast<Set>(~leading_);
}

inline const char *JsonUsage::read_some(const char *at,
                                        const char *end) noexcept
{
    switch (state_) {
    case State::kInKey:
        return read_in_key(at, end);
    case State::kInString:
        return read_in_string(at, end);
    case State::kInNumber:
        return read_in_number(at, end);
    case State::kInWord:
        return read_in_word(at, end);
    case State::kSkipping:
        return skip(at, end);
    case State::kFault:
        return end;
    default:
        return is_white_space(*at) ? skip_white_space(at + 1, end)
                                   : read_mark(at, end);
    }
}

/* What is not within a string, a number or a word. */
inline const char *JsonUsage::read_mark(const char *at,
                                        const char *end) noexcept
{
    switch (state_) {
    case State::kValue:
        return read_value(at, end);
    case State::kFirstElement:
        return read_first_element(at, end);
    case State::kFirstKey:
        return read_first_key(at, end);
    case State::kKey:
        return read_key(at, end);
    case State::kColon:
        return read_colon(at);
    case State::kAfterValue:
        return read_after_value(at);
    case State::kAfterListed:
        return read_after_listed(at);
    default:
        return fail(at);
    }
}

inline const char *JsonUsage::read_value(const char *at,
                                         const char *end) noexcept
{
    switch (*at) {
    case '{':
        enter(false);
        return at + 1;
    case '[':
        if (is_list()) {
            is_in_list_ = true;
            state_ = State::kFirstElement;
        } else {
            enter(true);
        }

        return at + 1;
    case '"':
        forget();
        state_ = State::kInString;
        return read_in_string(at + 1, end);
    default:
        return begin_scalar(at, end);
    }
}

inline const char *JsonUsage::begin_scalar(const char *at,
                                           const char *end) noexcept
{
    if (!is_part_of_word(*at)) {
        return fail(at);
    }

    if (leading_ != 0 && !is_letter(*at)) {
        number_ = UsageNumber();
        state_ = State::kInNumber;
        return read_in_number(at, end);
    }

    forget();
    state_ = State::kInWord;

    return read_in_word(at + 1, end);
}

inline const char *JsonUsage::read_in_word(const char *at,
                                           const char *end) noexcept
{
    while (at != end && is_part_of_word(*at)) {
        at++;
    }

    if (at != end) {
        end_value();
    }

    return at;
}

/* Whether the array that begins is one. */
inline bool JsonUsage::is_list() const noexcept
{
    return depth_ == 0 && !is_in_list_ && paths_->indexing(0) == 0;
}

inline void JsonUsage::end_list() noexcept
{
    is_in_list_ = false;
    end_value();
}

/* Whatever was found in another value of the same key no longer counts. */
inline void JsonUsage::enter(bool is_array) noexcept
{
    Set paths = leading_ & paths_->continuing(depth_);

    forget();

    if (is_array && paths != 0) {
        paths &= paths_->indexing(depth_);
    }

    if (paths == 0) {
        brackets_ = 1;
        state_ = State::kSkipping;
        return;
    }

    levels_[depth_].paths = paths;
    levels_[depth_].is_array = is_array;
    depth_++;

    if (is_array) {
        begin_element(0);
        state_ = State::kFirstElement;
    } else {
        state_ = State::kFirstKey;
    }
}

inline void JsonUsage::leave() noexcept
{
    depth_--;
    end_value();
}

inline void JsonUsage::begin_element(uint64_t index) noexcept
{
    Level *level = &levels_[depth_ - 1];

    level->index = index;
    leading_ = paths_->indexed(index, depth_ - 1U, level->paths);
    state_ = State::kValue;
}

inline const char *JsonUsage::read_first_element(const char *at,
                                                 const char *end) noexcept
{
    if (*at == ']') {
        depth_ > 0 ? leave() : end_list();
        return at + 1;
    }

    return read_value(at, end);
}

inline const char *JsonUsage::read_first_key(const char *at,
                                             const char *end) noexcept
{
    if (*at == '}') {
        leave();
        return at + 1;
    }

    return read_key(at, end);
}

/*
 * Leaves out members that no path leads to, as long as they are simple and all
 * of them is here: most are. It does nothing that would not be done for them
 * otherwise, but does it faster, as there is nothing to be remembered. From one
 * key to another.
 */
inline const char *JsonUsage::skip_members(const char *at,
                                           const char *end) const noexcept
{
    size_t level = depth_ - 1U;
    Set paths = levels_[level].paths;

    for (;;) {
        const char *key = at + 1;
        const char *to = find_either(key, end, '"', '\\');

        if (end - to < 2 || *to != '"' || to[1] != ':'
            || paths_->named({key, static_cast<size_t>(to - key)}, level, paths)
                   != 0)
        {
            return at;
        }

        to = skip_simple_value(skip_white_space(to + 2, end), end);

        if (to == end || *to != ',') {
            return at;
        }

        to = skip_white_space(to + 1, end);

        if (to == end || *to != '"') {
            return at;
        }

        at = to;
    }
}

inline const char *JsonUsage::read_key(const char *at, const char *end) noexcept
{
    if (*at != '"') {
        return fail(at);
    }

    at = skip_members(at, end) + 1;

    /* most are here as a whole and need not be copied */
    const char *to = find_either(at, end, '"', '\\');

    if (to != end && *to == '"') {
        end_key({at, static_cast<size_t>(to - at)});
        return to + 1;
    }

    key_.clear();
    state_ = State::kInKey;

    return at;
}

const char *JsonUsage::read_in_key(const char *at, const char *end) noexcept
{
    at = key_.feed(at, end);

    if (at == end) {
        return at;
    }

    end_key(key_.text());

    return at + 1;
}

inline void JsonUsage::end_key(std::string_view key) noexcept
{
    size_t level = depth_ - 1U;

    leading_ = paths_->named(key, level, levels_[level].paths);
    state_ = State::kColon;
}

inline const char *JsonUsage::read_colon(const char *at) noexcept
{
    if (*at != ':') {
        return fail(at);
    }

    state_ = State::kValue;

    return at + 1;
}

inline const char *JsonUsage::read_in_string(const char *at,
                                             const char *end) noexcept
{
    if (is_escaped_) {
        is_escaped_ = false;
        return at + 1;
    }

    at = find_either(at, end, '"', '\\');

    if (at == end) {
        return at;
    }

    if (*at == '\\') {
        is_escaped_ = true;
    } else {
        end_value();
    }

    return at + 1;
}

inline const char *JsonUsage::read_in_number(const char *at,
                                             const char *end) noexcept
{
    at = number_.feed(at, end);

    if (at == end) {
        return at;
    }

    if (!number_.is_complete() || !ends_number(*at)) {
        return fail(at);
    }

    end_number();

    return at;
}

void JsonUsage::end_number() noexcept
{
    forget();

    if (depth_ > 0 && leading_ != 0) {
        int64_t usage = number_.rounded_up();
        Set paths = leading_ & paths_->ending(depth_);

        if (usage != kNoUsage) {
            found_ |= paths;
        }

        for (unsigned i = 0; paths >> i != 0; i++) {
            if ((paths >> i & 1) != 0) {
                values_[i] = usage;
            }
        }
    }

    end_value();
}

inline void JsonUsage::end_value() noexcept
{
    if (depth_ > 0) {
        state_ = State::kAfterValue;
    } else if (is_in_list_) {
        keep_usage();
        state_ = State::kAfterListed;
    } else if (documents_ == Documents::kAny) {
        end_document();
    } else {
        state_ = State::kNothing;
    }
}

inline const char *JsonUsage::read_after_value(const char *at) noexcept
{
    const Level &level = levels_[depth_ - 1];

    if (*at == (level.is_array ? ']' : '}')) {
        leave();
    } else if (*at != ',') {
        return fail(at);
    } else if (level.is_array) {
        begin_element(level.index + 1);
    } else {
        state_ = State::kKey;
    }

    return at + 1;
}

inline const char *JsonUsage::read_after_listed(const char *at) noexcept
{
    if (*at == ']') {
        end_list();
    } else if (*at == ',') {
        begin_document();
    } else {
        return fail(at);
    }

    return at + 1;
}

inline const char *JsonUsage::skip(const char *at, const char *end) noexcept
{
    while (at != end && state_ == State::kSkipping) {
        auto size = static_cast<size_t>(end - at);

        if (size >= kMaskedBytes) {
            at = skip_block(at, kMaskedBytes);
        } else {
            char padded[kMaskedBytes];

            memset(padded, ' ', sizeof(padded));
            memcpy(padded, at, size);
            at += skip_block(padded, size) - padded;
        }
    }

    return at;
}

/* Of 64 bytes, so many of which are there. */
inline const char *JsonUsage::skip_block(const char *bytes,
                                         size_t size) noexcept
{
    ByteMasks masks = masks_of(bytes);
    uint64_t escaped = escaped_by(masks.backslashes, size);
    uint64_t in_strings = parity_up_to(masks.quotes & ~escaped)
                          ^ (is_in_string_ ? ~uint64_t{0} : 0);
    uint64_t opening = masks.opening & ~in_strings & ~escaped;
    uint64_t closing = masks.closing & ~in_strings & ~escaped;

    for (uint64_t rest = opening | closing; rest != 0; rest &= rest - 1) {
        uint64_t bracket = rest & -rest;

        brackets_ += (opening & bracket) != 0 ? 1 : uint64_t{0} - 1;

        if (brackets_ == 0) {
            is_in_string_ = false;
            is_escaped_ = false;
            end_value();
            return bytes + lowest_bit(rest) + 1;
        }
    }

    is_in_string_ = in_strings >> 63 != 0;

    return bytes + size;
}

/* The bytes that stand after such a backslash that does not do so itself. */
inline uint64_t JsonUsage::escaped_by(uint64_t backslashes,
                                      size_t size) noexcept
{
    uint64_t escaped = is_escaped_ ? 1 : 0;

    is_escaped_ = false;

    for (; backslashes != 0; backslashes &= backslashes - 1) {
        uint64_t backslash = backslashes & -backslashes;

        if ((escaped & backslash) != 0) {
            continue;
        }

        escaped |= backslash << 1;
        is_escaped_ = backslash == uint64_t{1} << (size - 1);
    }

    return escaped;
}

inline const char *JsonUsage::fail(const char *at) noexcept
{
    state_ = State::kFault;

    return at;
}

void JsonUsage::begin_document() noexcept
{
    depth_ = 0;
    found_ = 0;
    leading_ = paths_->all();
    state_ = State::kValue;
    is_escaped_ = false;
    is_in_string_ = false;
}

void JsonUsage::keep_usage() noexcept
{
    last_usage_ = usage();
    found_ = 0;
}

void JsonUsage::end_document() noexcept
{
    keep_usage();
    is_in_list_ = false;
    begin_document();
}

int64_t JsonUsage::usage() const noexcept
{
    return found_ != 0 ? values_[lowest_bit(found_)] : last_usage_;
}

}  // namespace sl
