import type { Kernel } from '../../kernel/kernel'
import type { FrameSite } from '../../kernel/operations'
import type { Fields, Json } from '../../kernel/types'
import LOCATE from '../../../../crates/outrigger-browser/src/scripts/locate.js?raw'
import OUTER from '../../../../crates/outrigger-browser/src/scripts/outer.js?raw'
import TARGET from '../../../../crates/outrigger-browser/src/scripts/target.js?raw'
import { ToolError } from '../tool'
import type { Desk, Tab } from './desk'
import type { Frame, Target } from './target'

export interface Point {
  x: number
  y: number
}

/** An element that a model has named by its reference. */
export class Element {
  private constructor(
    private readonly target: Target,
    private readonly frames: Frame[],
    readonly frame: Frame,
    private readonly object: string,
    /** `button "Pay"`. */
    readonly words: string,
  ) {}

  /** The element of a reference. One that leads nowhere is said to, and never used for another element. */
  static async of(kernel: Kernel, desk: Desk, tab: Tab, reference: string): Promise<Element> {
    const { key, words } = kernel.call('browser.element', { tab: tab.name, reference })
    const target = desk.target(tab)
    const frames = await target.frames()
    const frame = frames.find((it) => it.document === key.document)
    const stale = () => new ToolError('browser.stale', `${reference} leads nowhere: the page has changed; take a new snapshot`)
    if (!frame) throw stale()
    try {
      return new Element(target, frames, frame, await target.resolve(frame, key.node), words)
    } catch {
      throw stale()
    }
  }

  /** Runs a function on it. What it says cannot be done is an error. */
  async run(code: string, ...values: Json[]): Promise<Fields> {
    return asked(await this.target.on(this.object, this.frame.session, code, ...values))
  }

  /** Whose its frame is, and those around it, from the innermost to the page: as the frames themselves say it, now. */
  async sites(): Promise<FrameSite[]> {
    const sites = [await this.target.site(this.frame)]
    for (let frame = this.frame; frame.parent !== null; ) {
      frame = around(this.frames, frame)
      sites.push(await this.target.site(frame))
    }
    return sites
  }

  /** Where it, and nothing else, is hit: a point of the tab, through the frames that it is in. */
  async locate(action: string): Promise<Point> {
    let at = pointOf(await this.run(LOCATE, action))
    for (let frame: Frame = this.frame; frame.parent !== null; ) {
      const outer = around(this.frames, frame)
      const { backendNodeId } = await this.target.call('DOM.getFrameOwner', { frameId: frame.id }, outer.session)
      const owner = await this.target.resolve(outer, Number(backendNodeId))
      at = pointOf(asked(await this.target.on(owner, outer.session, OUTER, at.x, at.y)))
      frame = outer
    }
    return at
  }

  /** What rules ask about: attributes, whether it sends a form, whether it is checked. */
  describe(): Promise<Fields> {
    return this.run(TARGET)
  }
}

function around(frames: Frame[], frame: Frame): Frame {
  const outer = frames.find((it) => it.id === frame.parent)
  if (!outer) throw ToolError.failed('It was not done: the frame that it is in is gone')
  return outer
}

function asked(said: Fields): Fields {
  if (said['gone'] === true) throw new ToolError('browser.stale', 'The element is gone; take a new snapshot')
  if (typeof said['why'] === 'string') throw ToolError.failed(`It was not done: ${said['why']}`)
  return said
}

function pointOf(said: Fields): Point {
  return { x: Number(said['x']), y: Number(said['y']) }
}
