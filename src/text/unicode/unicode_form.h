#pragma once
#include "text/unicode/aligned_text.h"

namespace rlx {

enum class UnicodeForm { nfc, nfd, nfkc, nfkd };

/// Brings `text` into a normalization form (Unicode Standard Annex 15). Parts of a decomposed code point have its origin, a composite
/// that of its first part.
void to_unicode_form(AlignedText& text, UnicodeForm form);

}  // namespace rlx
