// Unigram: the likeliest way to cut a word, by the scores of tokens.

/** A score as libraries read it: its digits divided by a power of ten. Which of two equal ways wins depends on the last bit. */
function asRead(score) {
  const [digits, exponent] = Math.abs(score).toExponential().split("e"), power = exponent - Math.max(digits.length - 2, 0);
  return power < 0 && power >= -22 ? Math.sign(score) * digits.replace(".", "") / 10 ** -power : score;
}

export const wordModel = ({ vocab, unk_id: unknown, byte_fallback }, ids, { refuse, byteTokens }) => {
  const scores = vocab.map(([, score]) => asRead(score)), ofUnknown = scores.reduce((a, b) => Math.min(a, b)) - 10;
  const longest = vocab.reduce((most, [token]) => Math.max(most, token.length), 0);
  const idsOfUnknown = (text) => {
    const bytes = byte_fallback ? byteTokens(text).map((token) => ids.get(token)) : [undefined];
    return bytes.includes(undefined) ? [unknown ?? refuse("model", "Unigram without an unknown token")] : bytes;
  };
  return (word) => {
    const chars = Array.from(word), steps = [{ score: 0 }];
    chars.forEach((char, from) => {
      const reach = (to, score, id) => {
        const sum = score + steps[from].score;
        if (!steps[to] || sum > steps[to].score) steps[to] = { score: sum, from, id };
      };
      for (let to = from, piece = ""; to < chars.length && to < from + longest;) {
        const id = ids.get(piece += chars[to++]);
        if (id !== undefined) reach(to, scores[id], id);
      }
      if (!ids.has(char)) reach(from + 1, ofUnknown);
    });
    const found = [];
    for (let to = chars.length, rest = ""; to;) {
      const { from, id } = steps[to];
      if (id !== undefined) found.unshift(id);
      else rest = chars[from] + rest;
      if (rest && (!from || steps[from].id !== undefined)) found.unshift(...idsOfUnknown(rest)), rest = "";
      to = from;
    }
    return found;
  };
};

/** Rules of sentencepiece, an array of states and what replaces: for short grapheme clusters, else for single characters. */
function precompiled(base64, { utf8, textOf }) {
  const bytes = Uint8Array.from(atob(base64), (char) => char.charCodeAt(0)), end = 4 + new DataView(bytes.buffer).getUint32(0, true);
  const units = new Uint32Array(bytes.buffer.slice(4, end)), replacements = bytes.subarray(end);
  const offset = (unit) => (unit >>> 10) << ((unit & 0x200) >> 6);
  const replaced = (part) => {
    let node = offset(units[0]);
    for (const byte of utf8(part)) {
      node ^= byte;
      const unit = units[node];
      if (unit === undefined || (unit & 0x800000ff) !== byte) return undefined;
      node ^= offset(unit);
      const begin = units[node] & 0x7fffffff;
      if (unit & 0x100) return textOf(replacements.subarray(begin, replacements.indexOf(0, begin)));
    }
  };
  const clusters = new Intl.Segmenter("en");
  return (text) => Array.from(clusters.segment(text), ({ segment }) => (utf8(segment).length < 6 ? replaced(segment) : undefined) ??
    Array.from(segment, (char) => replaced(char) ?? char).join("")).join("");
}

export const steps = (tools) => ({
  normalizers: { Precompiled: (text, step) => (step.rules ??= precompiled(step.precompiled_charsmap, tools))(text) },
});
