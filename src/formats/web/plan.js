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

/** Launches for some sizes, with their memory. */
class Plan {
  constructor(program, values, launches, buffers) {
    this.program = program;
    this.values = values;
    this.own = [];  // buffers to be let go with it
    this.beside = new Map();  // copies of states
    this.commands = [];  // a launch, or a copy between buffers
    this.slots = this.place(launches, buffers);
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
  place(launches, buffers) {
    const { slots } = this.program.description, free = [], placed = [], at = [];
    const take = (bytes) => {
      free.sort((a, b) => a.bytes - b.bytes);
      const fits = free.findIndex((piece) => piece.bytes >= bytes);
      const piece = free.length ? free.splice(fits < 0 ? free.length - 1 : fits, 1)[0] : { bytes };
      piece.bytes = Math.max(piece.bytes, bytes);
      return piece;
    };
    const pending = launches.flatMap(({ launch, step }) => {
      slots.forEach((slot, s) => { if (slot.first === step) at[s] = take(this.bytes(slot)); });
      const calls = launch.kernels.map((call) => this.prepare(call, take, free));
      slots.forEach((slot, s) => { if (slot.last === step) free.push(at[s]); });
      return calls;
    });
    slots.forEach((slot, s) => {
      if (buffers[s]) placed[s] = buffers[s];
      else if (at[s]) placed[s] = at[s].buffer ??= this.buffer(at[s].bytes);
      else if (slot.place === "output" || slot.place === "input") placed[s] = this.buffer(this.bytes(slot));
    });
    for (const call of pending) if (call) this.note(call, placed);
    return placed;
  }

  /** A launch whose buffers are not made yet; nothing where it has nothing to do. */
  prepare(call, take, free) {
    if (call.only && (this.size(call.only[0]) < call.only[1] || this.size(call.only[0]) > call.only[2])) return undefined;
    const positions = call.grid.reduce((product, [extent, run]) => product * Math.ceil(this.size(extent) / run), 1);
    if (!positions) return undefined;
    const kernel = this.program.kernels[call.kernel], moved = [];
    const move = (b, piece, to, bytes) => moved.push({ b, piece, to, bytes });
    const seen = new Map(call.buffers.map(([slot], b) => [slot, b]).filter(([, b]) => kernel.writes[b]));
    const together = [];
    call.buffers.forEach(([slot, first], b) => {
      const memory = this.program.description.slots[slot], bytes = this.bytes(memory);
      if (kernel.gathered?.[b] != null) return together.push({ b, first, bytes: this.size(kernel.gathered[b]) * kernel.element_bytes[b] });
      if (!seen.has(slot)) seen.set(slot, b);
      else if (seen.get(slot) !== b) move(b, take(bytes), 0, bytes);  // WebGPU binds no memory twice where it may be written
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
    const groups = Math.ceil(positions / lanes), x = Math.min(groups, mostGroups);
    const table = [0, positions, ...firsts, ...this.values];
    this.commands.push({ kernel, buffers: [...bound.filter(Boolean), ...(gathered ? [gathered] : [])], table, x, y: Math.ceil(groups / x) });
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

  encode(encoder) {
    let pass;
    const end = () => { pass?.end(); pass = undefined; };
    for (const command of this.commands) {
      if (command.kernel) {
        pass ??= encoder.beginComputePass();
        pass.setPipeline(command.kernel.pipeline);
        pass.setBindGroup(0, command.group);
        pass.dispatchWorkgroups(command.x, command.y);
      } else {
        end();
        encoder.copyBufferToBuffer(command.from, command.fromByte, command.to, command.toByte, command.bytes);
      }
    }
    end();
  }

  letGo() { for (const buffer of this.own) buffer.destroy(); }
}
