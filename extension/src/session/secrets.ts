import type { Kernel } from '../kernel/kernel'
import type { FrameSite } from '../kernel/operations'
import { ToolError } from '../tools/tool'
import { mask } from './masked'

/** Values shorter than this are not looked for in pages: they would be found everywhere. */
const MIN_HIDDEN = 4

interface Kept {
  /** `NAME@HOST`. */
  list: string[]
  values: Record<string, string>
}

/** The user's secrets that may be typed by name, each at the hosts that its entry names: the model neither reads nor writes them. */
export class Secrets {
  constructor(
    private readonly kernel: Kernel,
    private readonly kept: () => Kept,
  ) {}

  /** The value of a secret, for a field in these frames, from the innermost to the page. */
  get(name: string, frames: FrameSite[]): string {
    const { list, values } = this.kept()
    const hosts = list.find((entry) => entry.startsWith(`${name}@`))?.slice(name.length + 1)
    const value = values[name] ?? ''
    try {
      this.kernel.call('browser.secret', { name, hosts: hosts && value ? hosts : null, frames })
    } catch (error) {
      throw ToolError.denied(`${error instanceof Error ? error.message : String(error)}; the user names secrets in the settings, as NAME@HOST`)
    }
    return value
  }

  /** Puts names in place of values, however these are written. */
  hide(text: string): string {
    let shown = text
    for (const [name, value] of Object.entries(this.kept().values)) {
      if (value.length >= MIN_HIDDEN) shown = mask(shown, value, `[secret ${name}]`)
    }
    return shown
  }
}
