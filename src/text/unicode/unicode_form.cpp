#include "text/unicode/unicode_form.h"

#include <algorithm>
#include <utility>

#include "text/unicode/unicode.h"

namespace rlx {
namespace {

/// A code point of the result and how it moves through the source: `change` is 1 for one that is inserted, 0 for one that takes the
/// place of the next code point, -n for one that takes the place of the next and swallows n more. Reordering moves
/// code points but not the places, which keeps origins ascending.
struct Edit {
  char32_t value;
  int combining_class;
  int change;
  std::size_t place;  // before reordering
};

using Edits = std::vector<Edit>;

/// Sorts a run of marks by class. Those of one class keep their order.
void sort_marks(Edits& edits, std::size_t first) {
  if (edits.size() < first + 2) return;
  std::sort(edits.begin() + static_cast<std::ptrdiff_t>(first), edits.end(),
            [](const Edit& a, const Edit& b) { return std::pair(a.combining_class, a.place) < std::pair(b.combining_class, b.place); });
}

/// The decomposition in canonical order: runs of marks are sorted by combining class.
Edits decompose(const AlignedText& text, bool compatibility) {
  Edits edits;
  edits.reserve(text.size());
  std::size_t marks = 0;  // where the run of marks at the end starts
  unicode::Decomposition parts;
  for (const AlignedChar& c : text) {
    const std::size_t count = unicode::decompose(c.value, compatibility, parts);
    for (std::size_t i = 0; i < count; ++i) {
      const int combining_class = unicode::combining_class(parts[i]);
      if (combining_class == 0) {
        sort_marks(edits, marks);
        marks = edits.size() + 1;
      }
      edits.push_back({parts[i], combining_class, i > 0 ? 1 : 0, edits.size()});
    }
  }
  sort_marks(edits, marks);
  return edits;
}

/// Composes in place: each code point joins the last starter if nothing between them blocks it.
void compose(Edits& edits) {
  std::size_t kept = 0;
  std::size_t starter = edits.size();  // index of the last starter, none yet
  for (const Edit edit : edits) {
    const bool adjacent = starter + 1 == kept;
    const bool open = starter < kept && (adjacent || edits[kept - 1].combining_class < edit.combining_class);
    const char32_t composite = open ? unicode::compose(edits[starter].value, edit.value) : 0;
    if (composite != 0) {
      edits[starter].value = composite;
      edits[starter].change += edit.change - 1;
      continue;
    }
    if (edit.combining_class == 0) starter = kept;
    edits[kept++] = edit;
  }
  edits.resize(kept);
}

AlignedText edited(const Edits& edits, const AlignedText& text) {
  AlignedText result;
  result.reserve(edits.size());
  std::size_t next = 0;  // the code point of `text` that the next replacement takes the place of
  for (const Edit& edit : edits) {
    AlignedChar origin = text[edit.change > 0 ? next - 1 : next];
    if (edit.change <= 0) next += 1 + static_cast<std::size_t>(-edit.change);
    result.push_back({edit.value, origin.begin, origin.end});
  }
  return result;
}

}  // namespace

void to_unicode_form(AlignedText& text, UnicodeForm form) {
  const bool ascii = std::all_of(text.begin(), text.end(), [](const AlignedChar& c) { return c.value < 0x80; });
  if (ascii) return;
  Edits edits = decompose(text, form == UnicodeForm::nfkc || form == UnicodeForm::nfkd);
  if (form == UnicodeForm::nfc || form == UnicodeForm::nfkc) compose(edits);
  text = edited(edits, text);
}

}  // namespace rlx
