// Models: sentences as vectors, and texts that go on token by token.

const integers = (shape, values) => ({ shape, data: Int32Array.from(values) });

/** An encoder of texts. */
export class SentenceEncoder {
  static async load(folder = "./", options) {
    const [program, tokenizer] = await Promise.all([Program.load(folder, options), Tokenizer.load(folder)]);
    return new SentenceEncoder(program, tokenizer);
  }

  constructor(program, tokenizer) {
    this.program = program;
    this.tokenizer = tokenizer;
    this.page = program.description.page;
    this.together = program.symbols.find(({ name }) => name === "B").bound;
  }

  /** A vector for each text; those of like length run together. */
  async embed(texts) {
    const rows = texts.map((text, at) => ({ at, ids: this.tokenizer.encode(this.page.prompt + text, this.page.max_length) }));
    rows.sort((a, b) => a.ids.length - b.ids.length);
    const vectors = [];
    while (rows.length) {
      const most = rows[0].ids.length * 5 / 4, longer = rows.findIndex(({ ids }) => ids.length > most);
      await this.run(rows.splice(0, Math.min(longer < 0 ? rows.length : longer, this.together)), vectors);
    }
    return vectors;
  }

  async run(rows, vectors) {
    const length = Math.max(...rows.map(({ ids }) => ids.length)), shape = [rows.length, length];
    const each = (value) => integers(shape, rows.flatMap(({ ids }) => Array.from({ length }, (_, i) => i < ids.length ? value(ids[i]) : 0)));
    const all = { input_ids: each((id) => id), attention_mask: each(() => 1), token_type_ids: each(() => 0) };
    const given = Object.fromEntries(this.program.inputs.filter(({ kind }) => kind === "input").map(({ name }) => [name, all[name]]));
    const { data, shape: [, width] } = (await this.program.run(given)).embedding;
    rows.forEach(({ at }, row) => { vectors[at] = data.slice(row * width, (row + 1) * width); });
  }
}

/** A language model with its cache of tokens, which stays on the GPU. */
export class LanguageModel {
  static async load(folder = "./", options) {
    const [program, tokenizer] = await Promise.all([Program.load(folder, options), Tokenizer.load(folder)]);
    return new LanguageModel(program, tokenizer);
  }

  constructor(program, tokenizer) {
    this.program = program;
    this.tokenizer = tokenizer;
    this.page = program.description.page;
    this.chunk = program.symbols.find(({ name }) => name === "S")?.bound ?? 1;
    this.ids = [];  // that the cache holds
  }

  /** Appends tokens; the logits behind the last. */
  async append(ids) {
    const { context, rings, short_length: short } = this.page, end = this.ids.length + ids.length;
    if (end > context) throw new Error(`${end} tokens are more than the context holds (allowed: up to ${context})`);
    if (this.ids.length <= short && end > short) ids = [...this.ids, ...ids], this.ids = [];  // longer texts turn keys otherwise
    let logits;
    for (let first = 0; first < ids.length; first += this.chunk) {
      const part = ids.slice(first, first + this.chunk), past = this.ids.length;
      const all = { input_ids: integers([1, part.length], part), past: integers([1], [past]), rows: integers([1, 1], [part.length - 1]), context: integers([], [end]), mask: integers([1, 1, part.length], part.map(() => 1)) };
      for (const { name, window, pages, page_tokens } of rings) {
        const page = Math.floor(Math.max(past - window + 1, 0) / page_tokens);
        all[name] = integers([1, pages], Array.from({ length: pages }, (_, i) => (page + i) % pages));
      }
      const given = Object.fromEntries(this.program.inputs.filter(({ kind }) => kind === "input").map(({ name }) => [name, all[name]]));
      logits = (await this.program.run(given, ["logits"])).logits.data;
      this.ids.push(...part);
    }
    return logits;
  }

  /** Continues a text: calls `onText` with all of it behind each token, until it gives false. The ids of the answer. */
  async generate(prompt, { tokens = 64, temperature = 0, onText = () => true } = {}) {
    const ids = this.tokenizer.encode(prompt), answer = [];
    if (!ids.length) throw new Error("there are no tokens to continue");
    this.ids = [];
    for (let next = ids; answer.length < tokens && this.ids.length + next.length <= this.page.context;) {
      const id = choose(await this.append(next), temperature);
      if (this.page.end_tokens.includes(id)) break;
      answer.push(id), next = [id];
      if (onText(this.tokenizer.decode([...ids, ...answer])) === false) break;
    }
    return answer;
  }
}

/** An encoder with a decoder, which answers what it has read: keys and values of the text stay on the GPU, as does the answer's cache. */
export class AnsweringModel {
  static async load(folder = "./", { progress = () => {}, ...options } = {}) {
    const tokenizer = await Tokenizer.load(folder);
    const decoder = await Program.load(folder, { ...options, progress: (part) => progress(part / 2) });
    const encoder = await Program.load(folder + "encoder/", { device: decoder.device, progress: (part) => progress((1 + part) / 2) });
    return new AnsweringModel(encoder, decoder, tokenizer);
  }

  constructor(encoder, decoder, tokenizer) {
    Object.assign(this, { encoder, decoder, tokenizer, page: decoder.description.page });
  }

  /** Reads a text, whose answer begins. */
  async read(ids) {
    const { context } = this.page;
    if (!ids.length || ids.length > context) throw new Error(`the text has ${ids.length} tokens (allowed: 1..${context})`);
    const seen = await this.encoder.run({ input_ids: integers([1, ids.length], ids) });
    for (const name in seen) seen[name].same = true;
    this.seen = seen, this.past = 0;
  }

  /** The logits behind the answer's next token. */
  async append(id) {
    const given = { ...this.seen, input_ids: integers([1, 1], [id]), past: integers([1], [this.past]) };
    const { data } = (await this.decoder.run(given, ["logits"])).logits;
    ++this.past;
    return data;
  }

  /** Answers a text: calls `onText` with all of the answer behind each token, until it gives false. Its ids. */
  async generate(prompt, { tokens = 256, temperature = 0, onText = () => true } = {}) {
    const { context, start_token, end_tokens } = this.page, answer = [];
    await this.read(this.tokenizer.encode(prompt));
    for (let next = start_token; answer.length < Math.min(tokens, context);) {
      next = choose(await this.append(next), temperature);
      if (end_tokens.includes(next)) break;
      answer.push(next);
      if (onText(this.tokenizer.decode(answer)) === false) break;
    }
    return answer;
  }
}

/** The likeliest token, or one by its probability. */
function choose(logits, temperature) {
  let best = 0;
  for (let i = 1; i < logits.length; ++i) if (logits[i] > logits[best]) best = i;
  if (temperature <= 0) return best;
  const weights = logits.map((logit) => Math.exp((logit - logits[best]) / temperature));
  let rest = Math.random() * weights.reduce((a, b) => a + b, 0);
  return Math.max(weights.findIndex((weight) => (rest -= weight) < 0), 0) || best;
}
