// What an answer must be: JSON, a schema's value, a regular expression's or a grammar's text.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "gpt/chat/reasoning.h"
#include "text/constrain/token_masks.h"

namespace hark::gpt {

struct ConstraintRequest {
    enum class Kind { none, json, json_object, schema, regex, grammar } kind = Kind::none;
    std::string text;  // of the last three: the schema's JSON, the pattern, GBNF

    auto operator<=>(const ConstraintRequest&) const = default;
};

// Throws Error for what is not supported or no text fits.
Grammar constraint_grammar(const ConstraintRequest& request);
void check_constraint(const ConstraintRequest& request);

// A model's constraints: each is made once, whatever number of answers has it.
class Constraints {
  public:
    // Keeps the reference and the pointer. `ends` are the tokens that end an answer. With markers,
    // a constraint begins after the reasoning: an answer may begin with one.
    Constraints(const Tokenizer& tokenizer, std::vector<int32_t> ends,
                const ReasoningMarkers* markers);

    // nullptr for Kind::none. `opened`: the prompt ends with the marker that begins the reasoning.
    // Throws Error as constraint_grammar() does.
    std::shared_ptr<TokenMasks> masks(const ConstraintRequest& request, bool opened);

  private:
    void allow_reasoning(Grammar& grammar, bool opened) const;
    Grammar::Expr marker(Grammar& grammar, std::string_view text) const;
    Grammar::Expr text_until(Grammar& grammar, std::string_view end) const;

    const Tokenizer& tokenizer_;
    std::vector<int32_t> ends_, specials_;
    const ReasoningMarkers* markers_;
    std::shared_ptr<const TokenTrie> trie_;
    std::map<std::pair<ConstraintRequest, bool>, std::shared_ptr<TokenMasks>> masks_;
};

// Whether the tokens are a whole text of the constraint, or the beginning of one.
struct ConstraintEnd {
    bool complete = false;  // can end here
    bool final = false;     // can only end here
};
ConstraintEnd end_of(TokenMasks& masks, const std::vector<int32_t>& tokens);

}  // namespace hark::gpt
