import type { FrameSite } from '../../kernel/operations'
import type { Fields, Json } from '../../kernel/types'
import WATCH from '../../../../crates/outrigger-browser/src/scripts/watch.js?raw'
import { ToolError } from '../tool'

/** The version of the DevTools protocol that is spoken. */
export const PROTOCOL = '1.3'
/** The world of ours in each frame: pages do not see what is in it, and cannot change what our code uses. */
const WORLD = 'outrigger'
/** How a person's click comes from there (`watch.js`). */
export const PERSON = 'outriggerPerson'
/** Each worker that attaches sees to it that a frame is watched; one that is watched twice would say each click of ours twice. */
const WATCH_ONCE = `globalThis.outriggerWatched ??= (() => {\n${WATCH}\nreturn true\n})()`
/** The ways to connect that no rule of the browser judges (`network.ts`): pages do not have them. Those that look whether they are there go on
 * without. */
export const UNJUDGED = `for (const name of ['RTCPeerConnection', 'webkitRTCPeerConnection', 'SharedWorker']) delete globalThis[name]
delete Navigator.prototype.serviceWorker`
/** What is enabled in a tab that is attached to, and in each of its frames that has a process of its own. */
const SETUP: [string, Fields][] = [
  ['Page.enable', {}],
  ['Runtime.enable', {}],
  ['Runtime.addBinding', { name: PERSON, executionContextName: WORLD }],
  ['Page.addScriptToEvaluateOnNewDocument', { source: UNJUDGED }],
  ['Page.addScriptToEvaluateOnNewDocument', { source: WATCH_ONCE, worldName: WORLD, runImmediately: true }],
  ['DOM.enable', {}],
  ['Network.enable', {}],
  ['Log.enable', {}],
  ['Accessibility.enable', {}],
  // A tab in the background behaves as one that is looked at, so that the person's focus can be left where it is.
  ['Emulation.setFocusEmulationEnabled', { enabled: true }],
]

/** A tab in the background is drawn only while something captures it, and clicks in frames of other sites go by what was drawn last. The
 * pictures are not used, and as small as they can be. */
const SCREENCAST: Fields = { format: 'jpeg', quality: 1, maxWidth: 1, maxHeight: 1 }

/** A frame of a page. */
export interface Frame {
  id: string
  /** Session of the protocol, where it has a process of its own. */
  session: string | undefined
  /** The frame around it. */
  parent: string | null
  /** The document that it shows. */
  document: string
  url: string
}

/** A frame in a process of its own. */
interface Child {
  /** Session of the frame around it. */
  around: string | undefined
  parent: string | null
  ready: Promise<void>
}

/** One tab over `chrome.debugger`, with its frames. The browser may detach when the worker dies; the tab is attached to again when it is needed. */
export class Target {
  #attached: Promise<void> | undefined
  /** By their sessions. */
  readonly #children = new Map<string, Child>()

  constructor(readonly id: number) {}

  async call(method: string, params: Fields = {}, session?: string): Promise<Fields> {
    await (this.#attached ??= this.#attach())
    try {
      return await this.#send(session, method, params)
    } catch (error) {
      throw ToolError.failed(`${method}: ${messageOf(error)}`)
    }
  }

  /** Runs a function on an element; the answer is JSON. */
  async on(object: string, session: string | undefined, code: string, ...values: Json[]): Promise<Fields> {
    const params = { objectId: object, functionDeclaration: code, arguments: values.map((value) => ({ value })), returnByValue: true, awaitPromise: true }
    const answer = await this.call('Runtime.callFunctionOn', params, session)
    if (answer['exceptionDetails']) throw ToolError.failed(`code on an element failed: ${JSON.stringify(answer['exceptionDetails'])}`)
    const value = (answer['result'] as Fields)['value'] ?? {}
    return (typeof value === 'object' && !Array.isArray(value) ? value : { value }) as Fields
  }

  /** The object of a node in our world of its frame. */
  async resolve(frame: Frame, node: number): Promise<string> {
    const { object } = await this.call('DOM.resolveNode', { backendNodeId: node, executionContextId: await this.#world(frame) }, frame.session)
    return String((object as Fields)['objectId'])
  }

  /** Whose a frame is, as the frame itself says it in a world that no page has a hand in. */
  async site(frame: Frame): Promise<FrameSite> {
    const params = { expression: '[origin, location.href]', contextId: await this.#world(frame), returnByValue: true }
    const { result } = await this.call('Runtime.evaluate', params, frame.session)
    const [origin, url] = ((result as Fields)['value'] ?? []) as Json[]
    if (typeof origin !== 'string' || typeof url !== 'string') throw ToolError.failed('It was not done: the frame that it is in is gone')
    return { origin, url }
  }

  async #world(frame: Frame): Promise<number> {
    const { executionContextId } = await this.call('Page.createIsolatedWorld', { frameId: frame.id, worldName: WORLD }, frame.session)
    return Number(executionContextId)
  }

  /** The frames of the page, its main one first. A frame may go while they are asked for; the page itself may not. */
  async frames(): Promise<[Frame, ...Frame[]]> {
    const own = treeOf(await this.call('Page.getFrameTree'), undefined, null)
    const [main] = own
    if (!main) throw ToolError.failed('the tab has no page')
    const roots = new Map([[undefined as string | undefined, main.id]])
    const frames: Frame[] = own
    for (const [session, child] of this.#children) {
      const tree = await child.ready.then(() => this.call('Page.getFrameTree', {}, session)).catch(() => null)
      if (!tree) continue
      const inside = treeOf(tree, session, child.parent ?? roots.get(child.around) ?? main.id)
      if (inside[0]) roots.set(session, inside[0].id)
      frames.push(...inside)
    }
    return frames as [Frame, ...Frame[]]
  }

  /** An event of the protocol about frames that have processes of their own. */
  take(session: string | undefined, method: string, params: Fields): void {
    const name = String(params['sessionId'])
    if (method === 'Target.detachedFromTarget') this.#children.delete(name)
    if (method !== 'Target.attachedToTarget') return
    const info = (params['targetInfo'] ?? {}) as Fields
    if (info['type'] !== 'iframe') {
      // Workers wait as frames do, and nothing is set up in them.
      this.#send(name, 'Runtime.runIfWaitingForDebugger', {}).catch(() => {})
      return
    }
    const parent = typeof info['parentFrameId'] === 'string' ? info['parentFrameId'] : null
    const ready = this.#setUp(name)
      // Its first document waits for what it is not to have.
      .then(async () => void (await this.#send(name, 'Runtime.runIfWaitingForDebugger', {})))
      .catch(() => {
        // It is gone already.
        this.#children.delete(name)
      })
    this.#children.set(name, { around: session, parent, ready })
  }

  detached(): void {
    this.#attached = undefined
    this.#children.clear()
  }

  async #send(session: string | undefined, method: string, params: Fields): Promise<Fields> {
    const to = session === undefined ? { tabId: this.id } : { tabId: this.id, sessionId: session }
    return ((await chrome.debugger.sendCommand(to, method, params)) ?? {}) as Fields
  }

  async #setUp(session: string | undefined): Promise<void> {
    await Promise.all(SETUP.map(([method, params]) => this.#send(session, method, params)))
    await this.#send(session, 'Target.setAutoAttach', { autoAttach: true, waitForDebuggerOnStart: true, flatten: true })
  }

  async #attach(): Promise<void> {
    try {
      await chrome.debugger.attach({ tabId: this.id }, PROTOCOL)
    } catch (error) {
      // The worker before this one has attached to it, and the browser has kept that.
      if (!messageOf(error).includes('already attached')) {
        this.#attached = undefined
        throw ToolError.failed(`the tab cannot be used: ${messageOf(error)}`)
      }
      // Frames that were attached to then are said anew.
      await this.#send(undefined, 'Target.setAutoAttach', { autoAttach: false, waitForDebuggerOnStart: false, flatten: true })
      await this.#send(undefined, 'Page.stopScreencast', {})
    }
    await this.#setUp(undefined)
    await this.#send(undefined, 'Page.startScreencast', SCREENCAST)
  }
}

function treeOf(answer: Fields, session: string | undefined, parent: string | null): Frame[] {
  const { frame, childFrames = [] } = (answer['frameTree'] ?? {}) as { frame?: Fields; childFrames?: Fields[] }
  if (!frame) return []
  const id = String(frame['id'])
  const one = { id, session, parent, document: String(frame['loaderId'] ?? ''), url: `${String(frame['url'] ?? '')}${String(frame['urlFragment'] ?? '')}` }
  return [one, ...childFrames.flatMap((child) => treeOf({ frameTree: child as Json }, session, id))]
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
