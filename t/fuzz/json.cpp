/* What is JSON and what is not, compared with a reader that goes by the book.
 */

#include "base/pure/sl_json.h"

#include "fuzz.h"
#include "json_reference.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    using json_reference::Value;

    std::string text = Input(data, size).rest();
    auto value = json_reference::read(text);

    check(sl::is_json(text) == value.has_value());

    /* a number without exponent, and nothing around it */
    check(sl::is_json_number(text)
          == (value && value->kind == Value::kNumber && value->text == text
              && text.find_first_of("eE") == std::string::npos));

    return 0;
}
