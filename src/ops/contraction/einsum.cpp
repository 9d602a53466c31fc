// einsum: the equation is taken apart into labels, and each pair of operands becomes one dot.
#include <algorithm>
#include <map>

#include "ops/wide.h"

namespace rlx {
namespace {

// A letter, or 256 + k for the axis of the ellipsis that is k-th from the right.
using Label = int;
using Labels = std::vector<Label>;
constexpr Label ellipsis = 256;

struct Term {
  Value value;
  Labels labels;
};

bool has(const Labels& labels, Label label) { return std::find(labels.begin(), labels.end(), label) != labels.end(); }
std::int64_t position(const Labels& labels, Label label) { return std::find(labels.begin(), labels.end(), label) - labels.begin(); }
std::string to_text(Label label) { return label < ellipsis ? std::string(1, static_cast<char>(label)) : "..."; }

class Equation {
 public:
  explicit Equation(std::string_view text) : text_(text) {
    std::string packed;
    for (char c : text)
      if (c != ' ') packed += c;
    const std::size_t arrow = packed.find("->");
    explicit_ = arrow != std::string::npos;
    if (explicit_) output_ = packed.substr(arrow + 2);
    const std::string inputs = packed.substr(0, arrow);
    for (std::size_t begin = 0;;) {
      const std::size_t comma = inputs.find(',', begin);
      terms_.push_back(inputs.substr(begin, comma - begin));
      if (comma == std::string::npos) break;
      begin = comma + 1;
    }
  }

  std::vector<Term> terms(const Values& operands) {
    if (terms_.size() != operands.size()) fail("rlx.einsum: '{}' names {} operands, given {}", text_, terms_.size(), operands.size());
    std::vector<Term> all;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const auto named = static_cast<int>(letters(terms_[i]));
      const bool dots = terms_[i].find("...") != std::string::npos;
      const int rank = operands[i].rank();
      if (dots ? rank < named : rank != named)
        fail("rlx.einsum: '{}' in '{}' names {} axes, operand {} is {}", terms_[i], text_, named, i, operands[i].type().to_string());
      if (dots) dots_ = std::max(dots_, rank - named);
      all.push_back({operands[i], parse(terms_[i], dots ? rank - named : 0)});
    }
    return all;
  }

  // After `terms`: the labels of the result.
  Labels output(const std::vector<Term>& terms) const {
    std::map<Label, int> seen;
    for (const Term& term : terms)
      for (Label label : term.labels) ++seen[label];
    if (!explicit_) {
      Labels result = parse("...", dots_);
      for (const auto& [label, count] : seen)
        if (label < ellipsis && count == 1) result.push_back(label);
      return result;
    }
    const bool dots = output_.find("...") != std::string::npos;
    Labels result = parse(output_, dots ? dots_ : 0);
    for (std::size_t i = 0; i < result.size(); ++i) {
      if (!seen.contains(result[i])) fail("rlx.einsum: output label '{}' of '{}' is in no operand", to_text(result[i]), text_);
      if (position(result, result[i]) != static_cast<std::int64_t>(i))
        fail("rlx.einsum: output label '{}' of '{}' is named twice", to_text(result[i]), text_);
    }
    return result;
  }

  const std::string& text() const { return text_; }

 private:
  static std::size_t letters(const std::string& term) {
    return static_cast<std::size_t>(std::count_if(term.begin(), term.end(), [](char c) { return c != '.'; }));
  }
  Labels parse(const std::string& term, int dots) const {
    Labels labels;
    bool seen = false;
    for (std::size_t i = 0; i < term.size(); ++i) {
      const char c = term[i];
      if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) {
        labels.push_back(c);
      } else if (!seen && term.compare(i, 3, "...") == 0) {
        for (int k = dots; k-- > 0;) labels.push_back(ellipsis + k);
        seen = true;
        i += 2;
      } else {
        fail("rlx.einsum: '{}' in '{}' is no label (allowed: letters, and ... once for each operand)", c, text_);
      }
    }
    return labels;
  }

  std::string text_, output_;
  std::vector<std::string> terms_;
  bool explicit_ = false;
  int dots_ = 0;  // most axes that an ellipsis stands for
};

// A label named twice in one operand takes the diagonal.
Term with_distinct_labels(Term term, const Equation& equation) {
  for (std::size_t i = 0; i < term.labels.size(); ++i) {
    for (std::size_t j = i + 1; j < term.labels.size(); ++j) {
      if (term.labels[i] != term.labels[j]) continue;
      const Label label = term.labels[i];
      const auto a = static_cast<std::int64_t>(i), b = static_cast<std::int64_t>(j);
      if (!(term.value.dim(a) == term.value.dim(b)))
        fail("rlx.einsum: label '{}' of '{}' has sizes {} and {} in {}", to_text(label), equation.text(), term.value.dim(a).to_string(),
             term.value.dim(b).to_string(), term.value.type().to_string());
      term.value = diagonal(term.value, a, b);
      term.labels.erase(term.labels.begin() + b);
      term.labels.erase(term.labels.begin() + a);
      term.labels.push_back(label);
      return with_distinct_labels(std::move(term), equation);
    }
  }
  return term;
}

// An axis of size 1 against a larger one broadcasts: the product does not depend on it, so it goes.
void drop_broadcast_axes(std::vector<Term>& terms, const Equation& equation) {
  std::map<Label, Dim> sizes;
  for (const Term& term : terms)
    for (std::size_t i = 0; i < term.labels.size(); ++i) {
      auto [it, added] = sizes.emplace(term.labels[i], term.value.shape()[i]);
      if (!added && it->second == Dim(1)) it->second = term.value.shape()[i];
    }
  for (std::size_t k = 0; k < terms.size(); ++k) {
    Term& term = terms[k];
    for (std::size_t i = term.labels.size(); i-- > 0;) {
      const Dim &size = term.value.shape()[i], &wanted = sizes.at(term.labels[i]);
      if (size == wanted) continue;
      if (!(size == Dim(1)))
        fail("rlx.einsum: label '{}' of '{}' has size {} in operand {} ({}) and {} before", to_text(term.labels[i]), equation.text(),
             size.to_string(), k, term.value.type().to_string(), wanted.to_string());
      term.value = squeeze(term.value, {static_cast<std::int64_t>(i)});
      term.labels.erase(term.labels.begin() + static_cast<std::int64_t>(i));
    }
  }
}

template <class Keep>
Term sum_out(Term term, Keep keep) {
  Axes axes;
  Labels kept;
  for (std::size_t i = 0; i < term.labels.size(); ++i) {
    if (keep(term.labels[i])) kept.push_back(term.labels[i]);
    else axes.values.push_back(static_cast<std::int64_t>(i));
  }
  return {sum(term.value, axes), kept};
}

template <class Needed>
Term contract(Term x, Term z, Needed needed) {
  x = sum_out(std::move(x), [&](Label l) { return needed(l) || has(z.labels, l); });
  z = sum_out(std::move(z), [&](Label l) { return needed(l) || has(x.labels, l); });
  std::vector<std::int64_t> xc, zc, xb, zb;
  Labels batch, free;
  for (Label label : x.labels) {
    if (!has(z.labels, label)) {
      free.push_back(label);
      continue;
    }
    (needed(label) ? xb : xc).push_back(position(x.labels, label));
    (needed(label) ? zb : zc).push_back(position(z.labels, label));
    if (needed(label)) batch.push_back(label);
  }
  for (Label label : z.labels)
    if (!has(x.labels, label)) free.push_back(label);
  batch.insert(batch.end(), free.begin(), free.end());
  return {dot(x.value, z.value, xc, zc, xb, zb), batch};
}

}  // namespace

/// Sums of products named by labels, as in NumPy: "bij,bjk->bik". Without `->` the labels named once come out in alphabetical order;
/// `...` stands for any number of broadcast axes; a label named twice in one operand takes its diagonal; axes of size 1 broadcast.
/// Operands are promoted and contracted from left to right. Throws Error naming the label that does not fit.
Value einsum(std::string_view equation, Operands operands) {
  Equation parsed(equation);
  std::vector<Term> terms = parsed.terms(operands);
  const Labels output = parsed.output(terms);
  DType dtype = operands[0].dtype();
  for (const Value& v : operands) dtype = promote(dtype, v.dtype());
  for (Term& term : terms) term = with_distinct_labels({cast(term.value, dtype), term.labels}, parsed);
  drop_broadcast_axes(terms, parsed);
  Term result = terms[0];
  for (std::size_t i = 1; i < terms.size(); ++i) {
    result = contract(result, terms[i], [&](Label label) {
      return has(output, label) || std::any_of(terms.begin() + static_cast<std::int64_t>(i) + 1, terms.end(),
                                               [&](const Term& t) { return has(t.labels, label); });
    });
  }
  result = sum_out(std::move(result), [&](Label label) { return has(output, label); });
  std::vector<std::int64_t> perm;
  for (Label label : output) perm.push_back(position(result.labels, label));
  return transpose(result.value, perm);
}

}  // namespace rlx
