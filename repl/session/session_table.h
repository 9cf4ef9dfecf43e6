// Tables of commands in a session's file.
#pragma once
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>

#include "repl/modules/results/table_object.h"

namespace kiln::script {

/// `value` gives a value's JSON, nullopt for one that cannot be saved: such details are left out.
nlohmann::ordered_json table_to_json(const TableObject& table,
                                     const std::function<std::optional<nlohmann::ordered_json>(const Value&)>& value);
/// Null when it is no such JSON. `value` is the inverse, and may throw.
Ref<TableObject> table_from_json(const nlohmann::ordered_json& json,
                                 const std::function<Value(const nlohmann::ordered_json&)>& value, int depth = 0);

}  // namespace kiln::script
