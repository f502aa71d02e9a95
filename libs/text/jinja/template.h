// A Jinja template, rendered as transformers renders chat templates.
#pragma once

#include <ctime>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/json/json.h"
#include "text/jinja/ast.h"
#include "text/jinja/piece.h"

namespace hark::jinja {

inline constexpr size_t kMaxTemplateBytes = size_t{1} << 20;

struct Variable {
    std::string name;
    nlohmann::ordered_json value;
    bool is_input = true;  // whether its strings come from outside
};

class Template {
  public:
    // Throws Error "where: line N: ..." if it is no template, or takes more than kMaxTemplateBytes.
    Template(std::string_view source, std::string where);

    // The output, cut where the origin of the text changes. `now` is what strftime_now shows.
    // Throws Error "where: line N: ..." also where the template raises an exception.
    std::vector<Piece> render(const std::vector<Variable>& variables, const std::tm& now) const;

    // Whether it uses the name as a variable anywhere.
    bool uses(std::string_view name) const;
    // Whether it reads an attribute or an item of this name.
    bool mentions(std::string_view name) const;

  private:
    std::string where_;
    Nodes statements_;
    std::vector<std::string> unset_;
};

// Fills Node::unset, and returns that of the whole template.
std::vector<std::string> find_unset_names(const Nodes& nodes);

// Throws Error for filters and tests that do not exist.
void check_names(const Nodes& nodes);

}  // namespace hark::jinja
