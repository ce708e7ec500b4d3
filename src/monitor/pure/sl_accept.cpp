#include "monitor/pure/sl_accept.h"

#include <algorithm>

#include "base/pure/sl_words.h"

namespace sl {

namespace {

std::string_view trimmed(std::string_view text)
{
    size_t first = text.find_first_not_of(" \t");
    size_t last = text.find_last_not_of(" \t");

    return first == std::string_view::npos
               ? std::string_view()
               : text.substr(first, last - first + 1);
}

/* Cuts off and returns what stands before the separator. */
std::string_view take(std::string_view *rest, char separator)
{
    size_t end = rest->find(separator);
    std::string_view piece = rest->substr(0, end);

    rest->remove_prefix(end == std::string_view::npos ? rest->size() : end + 1);

    return trimmed(piece);
}

/* "0.25" -> 250. What is no quality is taken as the best. */
unsigned read_quality(std::string_view text)
{
    constexpr unsigned kBest = 1000;

    if (text.empty() || text[0] != '0' || (text.size() > 1 && text[1] != '.')) {
        return kBest;
    }

    unsigned quality = 0;
    unsigned unit = kBest / 10;

    for (char ch : text.substr(std::min<size_t>(2, text.size()))) {
        if (ch < '0' || ch > '9') {
            return kBest;
        }

        quality += static_cast<unsigned>(ch - '0') * unit;
        unit /= 10;
    }

    return quality;
}

/* 3: the type itself, 1: anything; 0: it does not fit. */
int fit(std::string_view range, std::string_view type)
{
    if (is_same_word(range, type)) {
        return 3;
    }

    if (range.size() > 2 && range.substr(range.size() - 2) == "/*"
        && is_same_word(range.substr(0, range.size() - 1),
                        type.substr(0, range.size() - 1)))
    {
        return 2;
    }

    return range == "*/*" ? 1 : 0;
}

}  // namespace

unsigned accepted_quality(std::string_view accept,
                          std::string_view type) noexcept
{
    int best_fit = 0;
    unsigned quality = 0;

    while (!accept.empty()) {
        std::string_view item = take(&accept, ',');
        int fits = fit(take(&item, ';'), type);
        unsigned said = 1000;

        while (!item.empty()) {
            std::string_view parameter = take(&item, ';');

            if (is_same_word(parameter.substr(0, 2), "q=")) {
                said = read_quality(parameter.substr(2));
            }
        }

        if (fits > best_fit || (fits == best_fit && fits > 0)) {
            quality = fits > best_fit ? said : std::max(said, quality);
            best_fit = fits;
        }
    }

    return quality;
}

}  // namespace sl
