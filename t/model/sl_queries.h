/* A request of the model, as the module's own stores are asked about it. */

#pragma once

#include <string>
#include <vector>

#include "sl_model.h"
#include "store/pure/sl_limit_query.h"
#include "store/pure/sl_limit_state.h"

namespace sl_model {

/* The algorithms have the same names in both. */
inline sl::LimitQuery query_of(const Limit &limit, const std::string &name)
{
    return {"zone",
            name,
            limit.window,
            limit.max,
            limit.cost,
            static_cast<sl::Algorithm>(limit.algorithm),
            static_cast<unsigned>(limit.buckets),
            limit.counts_refused,
            limit.dry_run,
            false,
            sl::kNoPlace,
            sl::kNoMark,
            limit.true_cost};
}

class Queries {
  public:
    explicit Queries(const std::vector<Limit> &limits)
        : names_(limits.size()), queries_(limits.size())
    {
        for (size_t i = 0; i < limits.size(); i++) {
            names_[i] = std::to_string(limits[i].key);
            queries_[i] = query_of(limits[i], names_[i]);
        }
    }

    const sl::LimitQuery *data() const { return queries_.data(); }
    size_t size() const { return queries_.size(); }
    const sl::LimitQuery &operator[](size_t i) const { return queries_[i]; }

  private:
    std::vector<std::string> names_;
    std::vector<sl::LimitQuery> queries_;
};

}  // namespace sl_model
