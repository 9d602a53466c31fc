// WordPiece as BERT has it: the longest token, again and again.

export const wordModel = ({ unk_token, continuing_subword_prefix: prefix, max_input_chars_per_word: most }, ids) => {
  return (word) => {
    const chars = Array.from(word), found = [];
    for (let at = 0, end; at < chars.length && chars.length <= most; at = end) {
      const piece = () => (at ? prefix : "") + chars.slice(at, end).join("");
      for (end = chars.length; end > at && !ids.has(piece()); --end);
      if (end === at) return [ids.get(unk_token)];
      found.push(ids.get(piece()));
    }
    return chars.length > most ? [ids.get(unk_token)] : found;
  };
};

const chinese = /([\u4e00-\u9fff\u3400-\u4dbf\u{20000}-\u{2a6df}\u{2a700}-\u{2b73f}\u{2b740}-\u{2b81f}\u{2b820}-\u{2ceaf}\uf900-\ufaff\u{2f800}-\u{2fa1f}])/gu;

export const steps = ({ lower, split, punctuation }) => ({
  normalizers: {
    BertNormalizer: (text, { clean_text, handle_chinese_chars, strip_accents, lowercase }) => {
      if (clean_text) text = text.replace(/[\0\ufffd]|(?![\t\n\r])[\p{Cc}\p{Cf}\p{Co}]/gu, "").replace(/\p{White_Space}/gu, " ");
      if (handle_chinese_chars) text = text.replace(chinese, " $1 ");
      if (strip_accents ?? lowercase) text = text.normalize("NFD").replace(/\p{Mn}/gu, "");
      return lowercase ? lower(text) : text;
    },
  },
  cutters: {
    BertPreTokenizer: (word) => word.split(/\p{White_Space}+/u).flatMap((part) => split(part, new RegExp(punctuation, "gu"))),
  },
});
