// BPE over bytes or over characters: neighbours are merged by their ranks.

export const wordModel = (model, ids, { refuse, byteTokens }) => {
  for (const part of ["dropout", "continuing_subword_prefix", "end_of_word_suffix"]) if (model[part]) refuse("model", `BPE with ${part}`);
  const ranks = new Map(model.merges.map((merge, rank) => [typeof merge === "string" ? merge.replace(" ", "\0") : merge.join("\0"), rank]));
  const symbols = (word) => Array.from(word).flatMap((char) => {
    if (ids.has(char) || !model.byte_fallback) return [char];
    const bytes = byteTokens(char);
    return bytes.every((byte) => ids.has(byte)) ? bytes : [char];
  });
  const merged = (word) => {
    const all = symbols(word);
    for (;;) {
      let best = Infinity, at = -1;
      for (let i = 0; i + 1 < all.length; ++i) {
        const rank = ranks.get(all[i] + "\0" + all[i + 1]);
        if (rank < best) best = rank, at = i;
      }
      if (at < 0) return all;
      all.splice(at, 2, all[at] + all[at + 1]);
    }
  };
  const known = new Map();
  return (word) => {
    if (model.ignore_merges && ids.has(word)) return [ids.get(word)];
    if (!known.has(word)) {
      const found = [];
      let unknown = false;
      for (const symbol of merged(word)) {
        const id = ids.get(symbol) ?? ids.get(model.unk_token);
        if (id !== undefined && !(unknown && !ids.has(symbol) && model.fuse_unk)) found.push(id);
        unknown = !ids.has(symbol);
      }
      known.set(word, found);
    }
    return known.get(word);
  };
};

/** The character that stands for each byte in vocabularies of bytes. */
const byteChars = (() => {
  const chars = [];
  let next = 256;
  for (let byte = 0; byte < 256; ++byte) {
    const shown = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
    chars.push(String.fromCharCode(shown ? byte : next++));
  }
  return chars;
})();
const charBytes = new Map(byteChars.map((char, byte) => [char, byte]));

export const steps = ({ regex, utf8, textOf, split }) => {
  const gpt2 = regex("'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+");
  return {
    cutters: {
      ByteLevel: (word, { add_prefix_space, use_regex }) => {
        if (add_prefix_space && !word.startsWith(" ")) word = " " + word;
        return (use_regex === false ? [word] : split(word, gpt2)).map((part) => Array.from(utf8(part), (byte) => byteChars[byte]).join(""));
      },
    },
    decoders: {
      ByteLevel: (tokens) => [textOf(tokens.flatMap((token) => {
        const bytes = Array.from(token, (char) => charBytes.get(char));
        return bytes.includes(undefined) ? [...utf8(token)] : bytes;
      }))],
    },
  };
};
