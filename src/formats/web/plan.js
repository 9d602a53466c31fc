// Programs of RLX in a browser: rlx export --target web writes program.json, kernels.wgsl and weights.bin, and this runs them by WebGPU.

const arrays = {
  f32: Float32Array, i32: Int32Array, u32: Uint32Array, i16: Int16Array, u16: Uint16Array, f16: Uint16Array, bf16: Uint16Array,
  i8: Int8Array, i64: BigInt64Array, u64: BigUint64Array, c64: Float32Array,
};
const arrayOf = (dtype) => arrays[dtype] ?? Uint8Array;
const lanes = 64;  // of a group of a kernel
const mostGroups = 65535;  // of a dimension
const roundUp = (number, multiple) => Math.ceil(number / multiple) * multiple;
const usage = globalThis.GPUBufferUsage;

/** A size for these values of the symbols: a number, or terms of a coefficient and the places of its symbols. */
function sizeOf(size, values) {
  if (typeof size === "number") return size;
  return size.reduce((sum, [coefficient, ...symbols]) => sum + symbols.reduce((product, s) => product * values[s], coefficient), 0);
}

/** The values of the symbols that follow from the shapes of inputs. */
function bindSymbols(program, shapes) {
  const values = program.symbols.map(() => undefined);
  for (const input of program.inputs) {
    const shape = shapes[input.name];
    if (!shape) continue;
    if (shape.length !== input.shape.length) throw new Error(`input '${input.name}' has ${shape.length} axes, must have ${input.shape.length}`);
    input.shape.forEach((size, axis) => {
      if (typeof size === "number") return;
      const open = [...new Set(size.flatMap((term) => term.slice(1)).filter((s) => values[s] === undefined))];
      if (open.length !== 1 || size.some((term) => term.length > 2)) return;
      const factor = size.reduce((sum, [coefficient, s]) => sum + (s === open[0] ? coefficient : 0), 0);
      const others = size.reduce((sum, [coefficient, s]) => sum + (s === open[0] ? 0 : coefficient * (s === undefined ? 1 : values[s])), 0);
      values[open[0]] = (shape[axis] - others) / factor;
    });
  }
  program.symbols.forEach(({ name }, s) => {  // those that count runs of another, by their names
    const [, of, kind, most] = /^(.+)__(runs?)_(\d+)$/.exec(name) ?? [], size = values[program.symbols.findIndex((other) => other.name === of)];
    const count = Math.ceil(size / most);
    if (count) values[s] ??= kind === "runs" ? count : Math.ceil(size / count);
  });
  program.symbols.forEach(({ name, bound }, s) => {
    if (!(Number.isInteger(values[s]) && values[s] >= 1 && values[s] <= bound))
      throw new Error(`size ${name} is ${values[s] ?? "open"} (allowed: 1..${bound})`);
  });
  for (const input of program.inputs) {
    const wanted = input.shape.map((size) => sizeOf(size, values)), shape = shapes[input.name];
    if (shape && wanted.some((size, axis) => size !== shape[axis]))
      throw new Error(`input '${input.name}' has the shape ${shape}, must have ${wanted}`);
  }
  return values;
}

/** Commands on their way to the device. */
class Stream {
  constructor(device) { this.device = device; }

  get encoder() { return this.open ??= this.device.createCommandEncoder(); }
  endPass() {
    this.pass?.end();
    this.pass = undefined;
  }

  launch({ kernel, group, x, y }) {
    this.pass ??= this.encoder.beginComputePass();
    this.pass.setPipeline(kernel.pipeline);
    this.pass.setBindGroup(0, group);
    this.pass.dispatchWorkgroups(x, y);
  }
  copy({ from, fromByte, to, toByte, bytes }) {
    this.endPass();
    this.encoder.copyBufferToBuffer(from, fromByte, to, toByte, bytes);
  }
  submit() {
    this.endPass();
    if (this.open) this.device.queue.submit([this.open.finish()]);
    this.open = undefined;
  }

  /** A copy of a buffer that the host can read once it is submitted. */
  staged(from) {
    const to = this.device.createBuffer({ size: from.size, usage: usage.MAP_READ | usage.COPY_DST });
    this.copy({ from, fromByte: 0, to, toByte: 0, bytes: from.size });
    return to;
  }
  async bytesOf(staged, bytes) {
    await staged.mapAsync(GPUMapMode.READ);
    const read = staged.getMappedRange().slice(0, bytes);
    staged.destroy();
    return read;
  }
}

/** The kernel that moves slices which do not lie on words: of each word of the target it keeps what is beside the slice. */
const mover = `@group(0) @binding(0) var<uniform> t: vec4u;
@group(0) @binding(1) var<storage, read_write> a: array<u32>;
@group(0) @binding(2) var<storage, read_write> b: array<u32>;
@compute @workgroup_size(64) fn moved(@builtin(global_invocation_id) id: vec3u) {
  let w = t.y / 4 + id.x + id.y * t.w;
  if (w * 4 >= t.y + t.z) { return; }
  for (var k = 0u; k < 4; k++) {
    let at = w * 4 + k - t.y;
    if (at < t.z) { b[w] = insertBits(b[w], a[(at + t.x) / 4] >> ((at + t.x) % 4 * 8), k * 8, 8); }
  }
}`;

/** Launches of a program, or of one of its regions, for some sizes, with their memory. `given`: buffers that are there, by slot. */
class Plan {
  constructor(program, part, values, launches, given) {
    this.program = program;
    this.part = part;
    this.values = values;
    this.own = [];  // buffers and plans to be let go with it
    this.fed = [];  // what inputs hold that stay the same from run to run, by slot
    this.commands = [];  // launches, copies between buffers, plans of regions, choices
    this.slots = this.place(launches, given);
    this.addTables();
  }

  get device() { return this.program.device; }
  size(size) { return sizeOf(size, this.values); }
  bytes(slot) { return roundUp(this.size(slot.elements) * slot.bits / 8, 4); }
  buffer(bytes, more = 0) {
    const made = this.device.createBuffer({ size: Math.max(bytes, 4), usage: usage.STORAGE | usage.COPY_SRC | usage.COPY_DST | more });
    this.own.push(made);
    return made;
  }

  /** Chooses memory for all slots, and notes what the launches do. Blocks whose lives do not meet share it. */
  place(launches, given) {
    const { slots } = this.part, free = [], placed = [], at = [];
    const take = (bytes) => {
      free.sort((a, b) => a.bytes - b.bytes);
      const fits = free.findIndex((piece) => piece.bytes >= bytes);
      const piece = free.length ? free.splice(fits < 0 ? free.length - 1 : fits, 1)[0] : { bytes };
      piece.bytes = Math.max(piece.bytes, bytes);
      return piece;
    };
    const pending = launches.flatMap(({ launch, step }) => {
      slots.forEach((slot, s) => { if (slot.first === step) at[s] = take(this.bytes(slot)); });
      const calls = launch.kernels?.map((call) => this.prepare(call, given, take, free)) ?? [launch];
      slots.forEach((slot, s) => { if (slot.last === step) free.push(at[s]); });
      return calls;
    });
    slots.forEach((slot, s) => {
      if (given[s]) placed[s] = given[s];
      else if (at[s]) placed[s] = at[s].buffer ??= this.buffer(at[s].bytes);
      else if (slot.place === "output" || slot.place === "input") placed[s] = this.buffer(this.bytes(slot));
    });
    for (const call of pending) if (call) call.control ? this.noteControl(call, placed) : this.note(call, placed);
    return placed;
  }

  /** A launch whose buffers are not made yet; nothing where it has nothing to do. */
  prepare(call, given, take, free) {
    if (call.only && (this.size(call.only[0]) < call.only[1] || this.size(call.only[0]) > call.only[2])) return undefined;
    const positions = call.grid.reduce((product, [extent, run]) => product * Math.ceil(this.size(extent) / run), 1);
    if (!positions) return undefined;
    const kernel = this.program.kernels[call.kernel], moved = [];
    const move = (b, piece, to, bytes) => moved.push({ b, piece, to, bytes });
    const memoryOf = (slot) => given[slot] ?? slot;
    const seen = new Map(call.buffers.map(([slot], b) => [memoryOf(slot), b]).filter(([, b]) => kernel.writes[b]));
    const together = [];
    call.buffers.forEach(([slot, first], b) => {
      const memory = memoryOf(slot), bytes = this.bytes(this.part.slots[slot]);
      if (kernel.gathered?.[b] != null) return together.push({ b, first, bytes: this.size(kernel.gathered[b]) * kernel.element_bytes[b] });
      if (!seen.has(memory)) seen.set(memory, b);
      else if (seen.get(memory) !== b) move(b, take(bytes), 0, bytes);  // WebGPU binds no memory twice where it may be written
    });
    if (together.length) {
      const ends = [0];
      for (const { bytes } of together) ends.push(ends.at(-1) + roundUp(bytes, 8));
      const piece = take(ends.at(-1));
      together.forEach(({ b, first, bytes }, i) => moved.push({ b, piece, to: ends[i], bytes: roundUp(bytes, 4), from: first * kernel.element_bytes[b], gathered: true }));
    }
    free.push(...new Set(moved.map(({ piece }) => piece)));
    return { call, kernel, positions, moved };
  }

  note({ call, kernel, positions, moved }, placed) {
    const buffers = call.buffers.map(([slot]) => placed[slot]), firsts = call.buffers.map(([, first]) => first);
    const bound = [...buffers];
    let gathered;
    for (const { b, piece, to, bytes, from = 0, gathered: isGathered } of moved) {
      const target = piece.buffer ??= this.buffer(piece.bytes);
      this.commands.push({ from: buffers[b], fromByte: from, to: target, toByte: to, bytes });
      if (isGathered) gathered = target, bound[b] = undefined, firsts[b] = to / kernel.element_bytes[b];
      else bound[b] = target;
    }
    this.add(kernel, [...bound.filter(Boolean), ...(gathered ? [gathered] : [])], positions, () => [positions, ...firsts, ...this.values]);
  }

  add(kernel, buffers, positions, table) {
    const groups = Math.ceil(positions / lanes), x = Math.min(groups, mostGroups);
    this.commands.push({ kernel, buffers, table: table(x * lanes), x, y: Math.ceil(groups / x) });
  }

  /** Regions run on the device: a scan as its steps one by one; of cond and while the host reads the predicate. */
  noteControl({ control, operands, results, regions, carries, scanned, length, reverse }, placed) {
    const given = operands.map((slot) => placed[slot]), made = results.map((slot) => placed[slot]);
    const bytes = results.map((slot) => this.bytes(this.part.slots[slot]));
    if (control === "cond") {
      const [then, otherwise] = regions.map((region) => {
        const plan = this.inner(region, given.slice(1));
        return [plan, ...plan.results.map((from, i) => whole(from, made[i], bytes[i]))];
      });
      this.commands.push({ first: [], predicate: given[0], then, otherwise });
      return;
    }
    const carry = made.slice(0, carries), rest = given.slice(carries);
    carry.forEach((to, i) => this.commands.push(whole(given[i], to, bytes[i])));
    if (control === "while") {
      const [condition, step] = regions.map((region) => this.inner(region, [...carry, ...rest]));
      const next = this.moves(step.results.map((from, i) => whole(from, carry[i], bytes[i])));
      this.commands.push({ first: [condition], predicate: condition.results[0], then: [step, ...next], otherwise: [], again: true });
      return;
    }
    const region = this.program.description.regions[regions[0]], steps = this.size(length);
    const sliceBytes = (slot) => this.size(region.slots[slot].elements) * region.slots[slot].bits / 8;
    const slices = operands.slice(carries, carries + scanned).map((_, i) => {
      const size = sliceBytes(region.slots.findIndex(({ place, input }) => place === "input" && input === carries + i));
      return { from: rest[i], to: this.buffer(roundUp(size, 4)), size };
    });
    const step = this.inner(regions[0], [...carry, ...slices.map(({ to }) => to), ...rest.slice(scanned)]);
    const next = this.moves(carry.map((to, i) => whole(step.results[i], to, bytes[i])));
    for (let n = 0; n < steps; ++n) {
      const at = reverse ? steps - 1 - n : n;
      for (const { from, to, size } of slices) this.move(from, at * size, to, 0, size);
      this.commands.push(step);
      for (let r = carries; r < made.length; ++r) {
        const size = sliceBytes(region.outputs[r]);
        this.move(step.results[r], 0, made[r], at * size, size);
      }
      this.commands.push(...next);
    }
  }

  /** The plan of a region on these operands. */
  inner(number, operands) {
    const region = this.program.description.regions[number];
    const given = region.slots.map(({ place, input }, s) => place === "input" ? operands[input] : region.buffers[s]);
    const plan = new Plan(this.program, region, this.values, region.launches.map((launch, step) => ({ launch, step })), given);
    this.own.push(plan);
    return plan;
  }
  get results() { return this.part.outputs.map((slot) => this.slots[slot]); }

  /** Copies that seem to be made at one time: what one of them writes and another reads goes by way of a copy. */
  moves(copies) {
    const needed = copies.filter(({ from, to }) => from !== to), written = new Set(needed.map(({ to }) => to)), before = new Map();
    for (const { from, bytes } of needed)
      if (written.has(from) && !before.has(from)) before.set(from, whole(from, this.buffer(bytes), bytes));
    return [...before.values(), ...needed.map((copy) => ({ ...copy, from: before.get(copy.from)?.to ?? copy.from }))];
  }

  move(from, fromByte, to, toByte, bytes) {
    if (!bytes) return;
    if ([fromByte, toByte, bytes].every((number) => number % 4 === 0)) this.commands.push({ from, fromByte, to, toByte, bytes });
    else this.add(this.program.mover, [from, to], Math.ceil((toByte % 4 + bytes) / 4), (row) => [fromByte, toByte, bytes, row]);
  }

  /** The tables of sizes of all launches in one buffer, and what each launch binds. */
  addTables() {
    const launches = this.commands.filter((command) => command.kernel);
    const alignment = this.device.limits.minUniformBufferOffsetAlignment;
    let end = 0;
    for (const launch of launches) {
      launch.at = end;
      launch.bytes = roundUp(launch.table.length, 4) * 4;
      end = roundUp(end + launch.bytes, alignment);
    }
    const tables = this.device.createBuffer({ size: Math.max(end, 16), usage: usage.UNIFORM | usage.COPY_DST });
    this.own.push(tables);
    const words = new Int32Array(end / 4);
    for (const launch of launches) {
      if (launch.table.some((number) => number > 0x7f7fffff)) throw new Error(`kernel ${launch.kernel.name} counts beyond 31 bits`);
      words.set(launch.table, launch.at / 4);
      const bindings = [{ buffer: tables, offset: launch.at, size: launch.bytes }, ...launch.buffers.map((buffer) => ({ buffer }))];
      launch.group = this.device.createBindGroup({
        layout: launch.kernel.layout, entries: bindings.map((resource, binding) => ({ binding, resource })),
      });
    }
    this.device.queue.writeBuffer(tables, 0, words);
  }

  /** Puts all of it there, or these commands. */
  async encode(stream, commands = this.commands) {
    for (const command of commands) {
      if (command instanceof Plan) await command.encode(stream);
      else if (command.kernel) stream.launch(command);
      else if (command.to) stream.copy(command);
      else while (await this.encodeChoice(stream, command));
    }
  }

  /** Whether the choice is to be made again. */
  async encodeChoice(stream, { first, predicate, then, otherwise, again }) {
    await this.encode(stream, first);
    const staged = stream.staged(predicate);
    stream.submit();
    const holds = new Uint8Array(await stream.bytesOf(staged))[0];
    await this.encode(stream, holds ? then : otherwise);
    return again && holds;
  }

  destroy() { for (const each of this.own) each.destroy(); }
}
const whole = (from, to, bytes) => ({ from, fromByte: 0, to, toByte: 0, bytes });
