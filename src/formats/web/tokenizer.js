// Tokenizers by tokenizer.json: WordPiece as BERT has it, and BPE over bytes or over characters.

const refuse = (part, kind) => { throw new Error(`tokenizer.json: ${part} ${kind} is not supported in a page`); };
const escaped = (text) => text.replace(/[\\^$.*+?()[\]{}|/-]/g, "\\$&");
/** Files mean Unicode's white space, which is not quite that of scripts; not all browsers know groups without case. */
const regex = (text) => new RegExp(text.replace(/\\s/g, "\\p{White_Space}").replace(/\\S/g, "\\P{White_Space}")
  .replace(/\(\?i:([^()]*)\)/g, (_, inner) => `(?:${inner.replace(/[a-z]/gi, (char) => `[${char.toLowerCase()}${char.toUpperCase()}]`)})`), "gu");
const pattern = ({ Regex, String: text }) => Regex !== undefined ? regex(Regex) : new RegExp(escaped(text), "gu");
const gpt2 = regex("'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+");
const punctuation = /[!-/:-@[-`{-~]|\p{P}/u;
const chinese = /([\u4e00-\u9fff\u3400-\u4dbf\u{20000}-\u{2a6df}\u{2a700}-\u{2b73f}\u{2b740}-\u{2b81f}\u{2b820}-\u{2ceaf}\uf900-\ufaff\u{2f800}-\u{2fa1f}])/gu;

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
const utf8 = (text) => new TextEncoder().encode(text);
const textOf = (bytes, fatal = false) => new TextDecoder("utf-8", { fatal, ignoreBOM: true }).decode(new Uint8Array(bytes));

function bertNormalized(text, { clean_text, handle_chinese_chars, strip_accents, lowercase }) {
  if (clean_text) text = text.replace(/[\0\ufffd]|(?![\t\n\r])[\p{Cc}\p{Cf}\p{Co}]/gu, "").replace(/\p{White_Space}/gu, " ");
  if (handle_chinese_chars) text = text.replace(chinese, " $1 ");
  if (strip_accents ?? lowercase) text = text.normalize("NFD").replace(/\p{Mn}/gu, "");
  return lowercase ? lower(text) : text;
}
const lower = (text) => Array.from(text, (char) => char.toLowerCase()).join("");

const normalizers = {
  BertNormalizer: bertNormalized,
  Lowercase: lower,
  NFC: (text) => text.normalize("NFC"), NFD: (text) => text.normalize("NFD"),
  NFKC: (text) => text.normalize("NFKC"), NFKD: (text) => text.normalize("NFKD"),
  StripAccents: (text) => text.replace(/\p{M}/gu, ""),
  Strip: (text, { strip_left, strip_right }) => {
    if (strip_left) text = text.replace(/^\p{White_Space}+/u, "");
    return strip_right ? text.replace(/\p{White_Space}+$/u, "") : text;
  },
  Replace: (text, step) => text.replace(pattern(step.pattern), () => step.content),
  Prepend: (text, { prepend }) => text && prepend + text,
  Sequence: (text, { normalizers: steps }) => steps.reduce(normalized, text),
};
const normalized = (text, step) => step ? (normalizers[step.type] ?? refuse("normalizer", step.type))(text, step) : text;

/** The parts of a text between the matches and, where they are wanted, the matches, each with whether it is one. */
function parts(text, of) {
  const all = [];
  let end = 0;
  for (const match of text.matchAll(of)) {
    if (match.index > end) all.push([text.slice(end, match.index), false]);
    if (match[0]) all.push([match[0], true]);
    end = match.index + match[0].length;
  }
  if (end < text.length) all.push([text.slice(end), false]);
  return all;
}

/** Joins parts where `behavior` says that a match stays with its neighbour. */
function split(text, of, behavior = "Isolated", invert = false) {
  const words = [];
  let before;
  for (const [part, matches] of parts(text, of)) {
    const delimiter = matches !== invert;
    const joins = { MergedWithPrevious: !before && delimiter, MergedWithNext: before && !delimiter, Contiguous: before === delimiter }[behavior];
    if (behavior === "Removed" && delimiter) continue;
    if (joins && words.length) words.push(words.pop() + part);
    else words.push(part);
    before = delimiter;
  }
  return words;
}

const cutters = {
  BertPreTokenizer: (word) => word.split(/\p{White_Space}+/u).flatMap((part) => split(part, new RegExp(punctuation, "gu"))),
  WhitespaceSplit: (word) => word.split(/\p{White_Space}+/u).filter(Boolean),
  Whitespace: (word) => word.match(/[\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\u200c\u200d]+|[^\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\u200c\u200d\p{White_Space}]+/gu) ?? [],
  Punctuation: (word, { behavior }) => split(word, new RegExp(punctuation, "gu"), behavior),
  Digits: (word, { individual_digits }) => split(word, /\p{N}/gu, individual_digits ? "Isolated" : "Contiguous"),
  Split: (word, step) => split(word, pattern(step.pattern), step.behavior, step.invert),
  ByteLevel: (word, { add_prefix_space, use_regex }) => {
    if (add_prefix_space && !word.startsWith(" ")) word = " " + word;
    return (use_regex === false ? [word] : split(word, gpt2)).map((part) => Array.from(utf8(part), (byte) => byteChars[byte]).join(""));
  },
  Metaspace: (word, { replacement, prepend_scheme = "always", split: cuts = true }, atStart) => {
    const wanted = prepend_scheme === "always" || (prepend_scheme === "first" && atStart);
    const marked = word.replaceAll(" ", replacement);
    const text = wanted && !marked.startsWith(replacement) ? replacement + marked : marked;
    return cuts ? split(text, new RegExp(escaped(replacement), "gu"), "MergedWithNext") : [text];
  },
};
function cut(words, step, atStart) {
  if (!step) return words;
  if (step.type === "Sequence") return step.pretokenizers.reduce((all, each) => cut(all, each, atStart), words);
  const cutter = cutters[step.type] ?? refuse("pre-tokenizer", step.type);
  return words.flatMap((word, i) => cutter(word, step, atStart && i === 0));
}

function wordPiece({ unk_token, continuing_subword_prefix: prefix, max_input_chars_per_word: most }, ids) {
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
}

function bytePairs(model, ids) {
  for (const part of ["dropout", "continuing_subword_prefix", "end_of_word_suffix"]) if (model[part]) refuse("model", `BPE with ${part}`);
  const ranks = new Map(model.merges.map((merge, rank) => [typeof merge === "string" ? merge.replace(" ", "\0") : merge.join("\0"), rank]));
  const symbols = (word) => Array.from(word).flatMap((char) => {
    if (ids.has(char) || !model.byte_fallback) return [char];
    const bytes = Array.from(utf8(char), (byte) => `<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`);
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
}

/** The ids before and after one text. */
function frame(step) {
  if (!step || step.type === "ByteLevel") return [[], []];
  if (step.type === "BertProcessing" || step.type === "RobertaProcessing") return [[step.cls[1]], [step.sep[1]]];
  if (step.type === "Sequence") return step.processors.map(frame).reduce((a, b) => [[...b[0], ...a[0]], [...a[1], ...b[1]]], [[], []]);
  if (step.type !== "TemplateProcessing") refuse("post-processor", step.type);
  const text = step.single.findIndex((piece) => piece.Sequence);
  const ids = (pieces) => pieces.flatMap(({ SpecialToken: { id } }) => step.special_tokens[id].ids);
  return [ids(step.single.slice(0, text)), ids(step.single.slice(text + 1))];
}

const decoders = {
  ByteLevel: (tokens) => [textOf(tokens.flatMap((token) => {
    const bytes = Array.from(token, (char) => charBytes.get(char));
    return bytes.includes(undefined) ? [...utf8(token)] : bytes;
  }))],
  ByteFallback: (tokens) => {
    const all = [];
    for (let i = 0; i < tokens.length; ++i) {
      const bytes = [];
      for (let byte; (byte = /^<0x([0-9a-f]{2})>$/i.exec(tokens[i] ?? "")); ++i) bytes.push(parseInt(byte[1], 16));
      try {
        all.push(textOf(bytes, true));
      } catch {
        all.push(...bytes.map(() => "\ufffd"));
      }
      if (i < tokens.length) all.push(tokens[i]);
    }
    return all;
  },
  Fuse: (tokens) => [tokens.join("")],
  Replace: (tokens, step) => tokens.map((token) => token.replace(pattern(step.pattern), () => step.content)),
  Strip: (tokens, { content, start, stop }) => tokens.map((token) => {
    for (let i = 0; i < start && token.startsWith(content); ++i) token = token.slice(content.length);
    for (let i = 0; i < stop && token.endsWith(content); ++i) token = token.slice(0, -content.length);
    return token;
  }),
  Metaspace: (tokens, { replacement, prepend_scheme }) =>
    tokens.map((token, i) => token.replaceAll(replacement, i === 0 && prepend_scheme !== "never" ? "" : " ")),
  Sequence: (tokens, { decoders: steps }) => steps.reduce(decoded, tokens),
};
const decoded = (tokens, step) => (decoders[step.type] ?? refuse("decoder", step.type))(tokens, step);

export class Tokenizer {
  static async load(folder = "./") { return new Tokenizer(await (await fetched(folder + "tokenizer.json")).json()); }

  constructor(file) {
    this.file = file;
    const models = { WordPiece: wordPiece, BPE: bytePairs }, kind = file.model.type ?? "BPE";
    const ids = new Map(Object.entries(file.model.vocab));
    this.word = (models[kind] ?? refuse("model", kind))(file.model, ids);
    this.tokens = new Map([...ids].map(([token, id]) => [id, token]));
    this.added = new Map();
    for (const token of file.added_tokens) this.added.set(token.content, token), this.tokens.set(token.id, token.content);
    this.special = new Set(file.added_tokens.filter(({ special }) => special).map(({ id }) => id));
    this.frame = frame(file.post_processor);
    const matcher = (normalized) => {
      const some = file.added_tokens.filter((token) => token.normalized === normalized).sort((a, b) => b.content.length - a.content.length);
      return some.length ? new RegExp(some.map(({ content, lstrip, rstrip, single_word }) =>
        (lstrip ? "\\p{White_Space}*" : "") + (single_word ? "(?<![\\p{L}\\p{N}_])" : "") + escaped(content) +
        (single_word ? "(?![\\p{L}\\p{N}_])" : "") + (rstrip ? "\\p{White_Space}*" : "")).join("|"), "gu") : /(?!)/gu;
    };
    this.raw = matcher(false), this.after = matcher(true);
  }

  addedId(text) { return (this.added.get(text) ?? this.added.get(text.trim())).id; }

  /** The ids of a text, at most so many, with the special tokens around it. */
  encode(text, most = Infinity) {
    let atStart = true;
    const words = (part) => {
      const found = cut([part], this.file.pre_tokenizer, atStart).flatMap(this.word);
      atStart = false;
      return found;
    };
    const ids = parts(text, this.raw).flatMap(([part, isAdded]) => {
      if (!isAdded) return parts(normalized(part, this.file.normalizer), this.after).flatMap(([inner, is]) => is ? (atStart = false, [this.addedId(inner)]) : words(inner));
      atStart = false;
      return [this.addedId(part)];
    });
    const [before, after] = this.frame;
    return [...before, ...ids.slice(0, Math.max(most - before.length - after.length, 0)), ...after];
  }

  /** The text of tokens, without special ones. */
  decode(ids) {
    const tokens = ids.filter((id) => !this.special.has(id) && this.tokens.has(id)).map((id) => this.tokens.get(id));
    return (this.file.decoder ? decoded(tokens, this.file.decoder) : tokens).join(this.file.decoder ? "" : " ");
  }
}
