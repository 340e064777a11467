import type { Kernel } from '../../kernel/kernel'
import type { Fields, Json } from '../../kernel/types'
import LOCATE from '../../../../crates/outrigger-browser/src/scripts/locate.js?raw'
import TARGET from '../../../../crates/outrigger-browser/src/scripts/target.js?raw'
import { ToolError } from '../tool'
import type { Desk, Tab } from './desk'

export interface Point {
  x: number
  y: number
}

/** An element that a model has named by its reference. */
export class Element {
  private constructor(
    private readonly desk: Desk,
    private readonly tab: Tab,
    private readonly object: string,
    /** `button "Pay"`. */
    readonly words: string,
  ) {}

  /** The element of a reference. One that leads nowhere is said to, and never used for another element. */
  static async of(kernel: Kernel, desk: Desk, tab: Tab, reference: string): Promise<Element> {
    const { key, words } = kernel.call('browser.element', { tab: tab.name, reference })
    const target = desk.target(tab)
    const stale = () => new ToolError('browser.stale', `${reference} leads nowhere: the page has changed; take a new snapshot`)
    const frames = await target.call('Page.getFrameTree')
    const frame = ((frames['frameTree'] as Fields)['frame'] ?? {}) as Fields
    if (frame['loaderId'] !== key.document) throw stale()
    try {
      const { object } = await target.call('DOM.resolveNode', { backendNodeId: key.node })
      return new Element(desk, tab, String((object as Fields)['objectId']), words)
    } catch {
      throw stale()
    }
  }

  /** Runs a function on it. What it says cannot be done is an error. */
  async run(code: string, ...values: Json[]): Promise<Fields> {
    const said = await this.desk.target(this.tab).on(this.object, code, ...values)
    if (said['gone'] === true) throw new ToolError('browser.stale', 'The element is gone; take a new snapshot')
    if (typeof said['why'] === 'string') throw ToolError.failed(`It was not done: ${said['why']}`)
    return said
  }

  /** Where it, and nothing else, is hit. */
  async locate(action: string): Promise<Point> {
    const { x, y } = await this.run(LOCATE, action)
    return { x: Number(x), y: Number(y) }
  }

  /** What rules ask about: attributes, whether it sends a form, whether it is checked. */
  describe(): Promise<Fields> {
    return this.run(TARGET)
  }
}
