import type { Answers, Operation } from './operations'

/** The module's exports: `crates/outrigger-kernel-wasm/src/exports.rs`. */
interface Exports {
  memory: WebAssembly.Memory
  alloc(length: number): number
  call(): number
  out(): number
  free(): void
}

/** An answer larger than this is worth giving its room back. */
const LARGE = 1 << 20

/** What the kernel refuses, with its stable code. */
export class KernelError extends Error {
  constructor(
    readonly code: string,
    message: string,
  ) {
    super(message)
    this.name = 'KernelError'
  }
}

/** The kernel: every decision of the extension is made by it. A call is synchronous, and one is made at a time. */
export class Kernel {
  readonly #exports: Exports
  readonly #encoder = new TextEncoder()
  readonly #decoder = new TextDecoder()

  constructor(module: WebAssembly.Module) {
    this.#exports = new WebAssembly.Instance(module, {}).exports as unknown as Exports
  }

  static async load(url: string): Promise<Kernel> {
    return new Kernel(await WebAssembly.compileStreaming(fetch(url)))
  }

  /** Asks the kernel; `lines` are stored records, handed over as they are. Throws [[KernelError]]. */
  call<O extends Operation>(op: O, ask: Answers[O]['with'], lines: string[] = []): Answers[O]['ok'] {
    const { alloc, call, out, free, memory } = this.#exports
    const request = this.#encoder.encode([JSON.stringify({ op, with: ask }), ...lines].join('\n'))
    // Room is made first: the memory may be another one afterwards.
    const place = alloc(request.length)
    new Uint8Array(memory.buffer, place, request.length).set(request)
    const length = call()
    const answer = JSON.parse(this.#decoder.decode(new Uint8Array(memory.buffer, out(), length))) as
      | { ok: Answers[O]['ok'] }
      | { error: { code: string; message: string } }
    if (request.length + length > LARGE) free()
    if ('error' in answer) throw new KernelError(answer.error.code, answer.error.message)
    return answer.ok
  }
}
