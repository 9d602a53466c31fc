// BPE over bytes or over characters: neighbours are merged by their ranks.

/** Numbers, of which the smallest is taken first: a heap. */
function smallestFirst() {
  const heap = [];
  return {
    add(number) {
      let at = heap.push(number) - 1;
      for (let above; at > 0 && heap[above = (at - 1) >> 1] > number; at = above) heap[at] = heap[above];
      heap[at] = number;
    },
    take() {
      const least = heap[0], last = heap.pop();
      if (heap.length === 0) return least;
      let at = 0;
      for (let below; (below = 2 * at + 1) < heap.length; at = below) {
        if (heap[below + 1] < heap[below]) ++below;
        if (heap[below] >= last) break;
        heap[at] = heap[below];
      }
      heap[at] = last;
      return least;
    },
  };
}

export const wordModel = (model, ids, { refuse, byteTokens }) => {
  for (const part of ["dropout", "continuing_subword_prefix", "end_of_word_suffix"]) if (model[part]) refuse("model", `BPE with ${part}`);
  const ranks = new Map(model.merges.map((merge, rank) => [typeof merge === "string" ? merge.replace(" ", "\0") : merge.join("\0"), rank]));
  const symbols = (word) => Array.from(word).flatMap((char) => {
    if (ids.has(char) || !model.byte_fallback) return [char];
    const bytes = byteTokens(char);
    return bytes.every((byte) => ids.has(byte)) ? bytes : [char];
  });
  const merged = (word) => {
    const all = symbols(word), count = all.length;
    const left = all.map((_, i) => i - 1), right = all.map((_, i) => i + 1), next = [];
    const queue = smallestFirst();
    const rank = (i) => {  // of a symbol with its right neighbour; those queued before are known by theirs
      next[i] = right[i] < count ? ranks.get(all[i] + "\0" + all[right[i]]) : undefined;
      if (next[i] !== undefined) queue.add(next[i] * count + i);
    };
    for (let i = 0; i < count; ++i) rank(i);
    for (let least; (least = queue.take()) !== undefined;) {
      const i = least % count, gone = right[i];
      if (next[i] !== Math.floor(least / count)) continue;
      all[i] += all[gone], all[gone] = next[gone] = undefined;
      right[i] = right[gone];
      if (right[i] < count) left[right[i]] = i;
      rank(i);
      if (left[i] >= 0) rank(left[i]);
    }
    return all.filter((symbol) => symbol !== undefined);
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
