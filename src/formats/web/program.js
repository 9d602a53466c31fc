// A program with its weights on a device.

/** The device that a page computes on. Throws an Error that a page can show where there is none. */
export async function openDevice(largest = 0, most = largest) {
  if (!navigator.gpu) throw new Error("This browser has no WebGPU. Chrome and Edge 113, Safari 26, Firefox 141 and newer ones have it, for pages of https and of localhost.");
  const adapter = await navigator.gpu.requestAdapter({ powerPreference: "high-performance" });
  if (!adapter) throw new Error("This browser has WebGPU, but finds no GPU that it may use.");
  const has = Math.min(adapter.limits.maxStorageBufferBindingSize, adapter.limits.maxBufferSize);
  if (largest > has) throw new Error(`The model needs a buffer of ${largest} bytes, and this GPU has at most ${has}.`);
  const wanted = Math.min(most, has);
  const requiredLimits = {};
  if (wanted > 128 << 20) requiredLimits.maxStorageBufferBindingSize = wanted;
  if (wanted > 256 << 20) requiredLimits.maxBufferSize = wanted;
  return adapter.requestDevice({ requiredLimits });
}

async function fetched(url) {
  const response = await fetch(url);
  if (!response.ok) throw new Error(`${url}: ${response.status} ${response.statusText}`);
  return response;
}

/** A compiled graph with its weights on a device. */
export class Program {
  /** `folder`: where the files lie, ending in "/". `progress`: called with the part of the weights that is there, 0 to 1. */
  static async load(folder = "./", { device, progress = () => {} } = {}) {
    const description = await (await fetched(folder + "program.json")).json();
    if (description.format !== "rlx web program" || description.version !== 2)
      throw new Error(`${folder}program.json: it is no program of version 2`);
    const bounds = description.symbols.map(({ bound }) => bound);
    const largest = (slots) => Math.max(0, ...slots.map(({ elements, bits }) => roundUp(sizeOf(elements, bounds) * bits / 8, 4)));
    const slots = [description, ...description.regions].flatMap((part) => part.slots);
    const fixed = slots.filter(({ elements }) => typeof elements === "number");
    const program = new Program(description, device ?? await openDevice(largest(fixed), largest(slots)));
    await program.checked(async () => {
      await program.loadKernels(await (await fetched(folder + "kernels.wgsl")).text());
      if (description.weight_bytes) await program.loadWeights((await fetched(folder + "weights.bin")).body.getReader(), progress);
      await program.prepare();
    });
    return program;
  }

  constructor(description, device) {
    this.description = description;
    this.device = device;
    this.plans = new Map();
    this.turn = Promise.resolve();
    for (const part of this.parts) part.buffers = part.slots.map((slot) => this.isKept(slot) ? this.zeros(slot) : undefined);
    device.lost.then(({ message }) => { this.lost = new Error(`The GPU was lost: ${message}`); });
  }

  get parts() { return [this.description, ...this.description.regions]; }
  get symbols() { return this.description.symbols; }
  get inputs() { return this.description.inputs; }
  get outputs() { return this.description.outputs; }

  isKept(slot) {
    return slot.from !== undefined || slot.place === "prepared" || this.isState(slot);
  }
  isState(slot) { return this.description.slots.includes(slot) && slot.place === "input" && this.inputs[slot.input].kind === "state"; }
  zeros(slot) {
    const size = Math.max(roundUp(slot.elements * slot.bits / 8, 4), 4);
    return this.device.createBuffer({ size, usage: usage.STORAGE | usage.COPY_SRC | usage.COPY_DST });
  }

  /** Does `work`, and throws what the device says of it. */
  async checked(work) {
    if (this.lost) throw this.lost;
    for (const kind of ["validation", "out-of-memory", "internal"]) this.device.pushErrorScope(kind);
    let result, failure;
    try { result = await work(); } catch (error) { failure = error; }
    for (let scope = 0; scope < 3; ++scope) {
      const error = await this.device.popErrorScope().catch(() => null);
      if (error) failure ??= new Error(`${error.constructor.name === "GPUOutOfMemoryError" ? "The GPU's memory is full: " : ""}${error.message}`);
    }
    if (this.lost || failure) throw this.lost ?? failure;
    return result;
  }

  async loadKernels(text) {
    const layouts = new Map();
    const layout = (buffers) => {
      if (!layouts.has(buffers)) layouts.set(buffers, this.device.createBindGroupLayout({
        entries: Array.from({ length: buffers + 1 }, (_, binding) => (
          { binding, visibility: GPUShaderStage.COMPUTE, buffer: { type: binding ? "storage" : "uniform" } })),
      }));
      return layouts.get(buffers);
    };
    const load = async (kernel, code, buffers) => {
      const bound = layout(buffers), module = this.device.createShaderModule({ code });
      for (const { type, lineNum, message } of (await module.getCompilationInfo()).messages)
        if (type === "error") throw new Error(`kernel ${kernel.name}, line ${lineNum}: ${message}`);
      const pipeline = await this.device.createComputePipelineAsync({
        layout: this.device.createPipelineLayout({ bindGroupLayouts: [bound] }), compute: { module, entryPoint: kernel.name },
      });
      return { ...kernel, layout: bound, pipeline };
    };
    this.kernels = await Promise.all(this.description.kernels.map((kernel) => {
      const gathered = (kernel.gathered ?? []).filter((elements) => elements != null).length;
      return load(kernel, text.substr(...kernel.text), kernel.writes.length - Math.max(gathered - 1, 0));
    }));
    if (this.description.regions.length) this.mover = await load({ name: "moved" }, mover, 2);
  }

  /** Writes the file's bytes into the buffers as they come. */
  async loadWeights(reader, progress) {
    const targets = this.parts.flatMap(({ slots, buffers }) => slots.map(({ from }, s) => ({ from, bytes: buffers[s]?.size, buffer: buffers[s] })))
      .filter(({ from }) => from !== undefined).sort((a, b) => a.from - b.from);
    let at = 0, next = 0, rest = new Uint8Array(0);
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      const bytes = new Uint8Array(rest.length + value.length);
      bytes.set(rest), bytes.set(value, rest.length);
      const whole = bytes.length & ~3;
      for (; next < targets.length && targets[next].from < at + whole; ++next) {
        const { from, bytes: size, buffer } = targets[next], first = Math.max(from, at), last = Math.min(from + size, at + whole);
        if (last > first) this.device.queue.writeBuffer(buffer, first - from, bytes, first - at, last - first);
        if (from + size > at + whole) break;
      }
      at += whole, rest = bytes.slice(whole);
      progress(at / this.description.weight_bytes);
    }
    if (at !== this.description.weight_bytes) throw new Error(`weights.bin has ${at + rest.length} bytes, must have ${this.description.weight_bytes}`);
  }

  launches(prepared) {
    return this.description.launches.map((launch, step) => ({ launch, step })).filter(({ launch }) => launch.prepared === prepared);
  }

  /** Computes what is the same in every run, and lets go of the weights that only this reads. */
  async prepare() {
    const symbols = this.symbols.map(() => 1);  // no size depends on them
    const { buffers } = this.description, plan = new Plan(this, this.description, symbols, this.launches(true), buffers);
    const stream = new Stream(this.device);
    await plan.encode(stream);
    stream.submit();
    await this.device.queue.onSubmittedWorkDone();
    plan.destroy();
    const read = new Set(this.outputs.map(({ slot }) => slot));
    for (const { launch: { kernels = [], operands = [] } } of this.launches(false)) {
      for (const call of kernels) for (const [slot] of call.buffers) read.add(slot);
      for (const slot of operands) read.add(slot);
    }
    buffers.forEach((buffer, s) => { if (buffer && !read.has(s) && !this.isState(this.description.slots[s])) buffer.destroy(); });
  }

  /** The plan for these sizes: the last few are kept. */
  planFor(values) {
    const key = values.join();
    const known = this.plans.get(key);
    const plan = known ?? new Plan(this, this.description, values, this.launches(false), this.description.buffers);
    this.plans.delete(key);
    this.plans.set(key, plan);
    for (const old of [...this.plans.keys()].slice(0, -3)) this.plans.get(old).destroy(), this.plans.delete(old);
    return plan;
  }

  /**
   * The outputs of that name, all but states where none are named, as {name: {dtype, shape, data}}. `given`: for each input
   * {shape, data}, a typed array of its elements; `same` beside them says that they do not change as long as the array is the same, so that
   * they are not brought again. What it makes of states is what the next run reads.
   */
  run(given, wanted) {
    this.turn = this.turn.catch(() => {}).then(() => this.checked(() => this.runNow(given, wanted)));
    return this.turn;
  }

  async runNow(given, wanted) {
    const names = this.inputs.filter(({ kind }) => kind === "input").map(({ name }) => name);
    for (const name of names) if (!given[name]) throw new Error(`input '${name}' is missing`);
    for (const name in given) if (!names.includes(name)) throw new Error(`input '${name}' is unknown (allowed: ${names.join(", ")})`);
    const plan = this.planFor(bindSymbols(this, Object.fromEntries(names.map((name) => [name, given[name].shape]))));
    this.description.slots.forEach((slot, s) => {
      const input = this.inputs[slot.input];
      if (slot.place !== "input" || input.kind !== "input") return;
      const { data, same } = given[input.name], bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
      const size = Math.ceil(plan.size(slot.elements) * slot.bits / 8);
      if (bytes.length !== size) throw new Error(`input '${input.name}' has ${bytes.length} bytes, must have ${size}`);
      if (same && plan.fed[s] === data) return;
      plan.fed[s] = same && data;
      const words = new Uint8Array(roundUp(size, 4));
      words.set(bytes);
      this.device.queue.writeBuffer(plan.slots[s], 0, words);
    });
    const stream = new Stream(this.device);
    await plan.encode(stream);
    const states = new Map(this.inputs.map(({ kind, name }, i) => [kind === "state" && name, i]));
    const results = this.outputs.filter(({ name }) => wanted ? wanted.includes(name) : !states.has(name));
    const staged = results.map(({ slot }) => stream.staged(plan.slots[slot]));
    await plan.encode(stream, plan.keeps ??= this.statesKept(plan, states));
    stream.submit();
    const read = {};
    for (let i = 0; i < results.length; ++i) {
      const { name, dtype, slot, shape } = results[i], { elements, bits } = this.description.slots[slot];
      const bytes = await stream.bytesOf(staged[i], Math.ceil(plan.size(elements) * bits / 8));
      read[name] = { dtype, shape: shape.map((size) => plan.size(size)), data: new (arrayOf(dtype))(bytes) };
    }
    return read;
  }

  /** Lets go of all its memory. */
  letGo() {
    for (const plan of this.plans.values()) plan.destroy();
    for (const { buffers } of this.parts) for (const buffer of buffers) buffer?.destroy();
  }

  /** Puts the next values of states where the next run reads them. */
  statesKept(plan, states) {
    return plan.moves(this.outputs.filter(({ name }) => states.has(name)).map(({ name, slot }) => {
      const to = plan.slots[this.description.slots.findIndex(({ place, input }) => place === "input" && input === states.get(name))];
      return whole(plan.slots[slot], to, to.size);
    }));
  }
}
