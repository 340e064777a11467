import type { Grant } from '../../kernel/operations'
import type { Fields } from '../../kernel/types'
import FILL from '../../../../crates/outrigger-browser/src/scripts/fill.js?raw'
import FOCUS from '../../../../crates/outrigger-browser/src/scripts/focus.js?raw'
import SCROLL from '../../../../crates/outrigger-browser/src/scripts/scroll.js?raw'
import SELECT from '../../../../crates/outrigger-browser/src/scripts/select.js?raw'
import VALUE from '../../../../crates/outrigger-browser/src/scripts/value.js?raw'
import { type Context, ToolError } from '../tool'
import type { Tab } from './desk'
import { type Download, downloadOf, put } from './transfer'
import { Element, type Point } from './element'
import { chord, type Press } from './keys'
import { notArrived } from './network'

/** What came of an action that was sent. */
export interface Done {
  /** The value that a field has now. */
  value?: string
  /** The labels of the options that were chosen. */
  chosen?: string
  notes: string[]
  /** A file that came, and is not in the workspace yet. */
  download?: Download
}

/** What is done, beside what the model has said of it. */
export interface Given {
  /** What is typed: the text of the call, or a secret. */
  text: string
  /** The name of the secret that it is: it goes into the field itself, not to what has the focus, which another frame may take meanwhile. */
  secret?: string
  /** The file that is uploaded. */
  file?: { name: string; bytes: Uint8Array }
}

const LOAD = 15_000
const PAUSE = 50
/** Keys that leave a field as it is. */
const LEAVING = new Set(['Enter', 'Tab', 'Shift+Tab', 'Escape'])
/** Points on the way of a drag. */
const DRAG_STEPS = 6

/** How long a field has to hold what it was given, in milliseconds. */
const HOLD = 100
const CHECKS = ['check', 'uncheck']

/** Does one thing to a tab. Everything that changes it goes through here, and each time the lease is looked at first (C9, 6). */
export class Writer {
  constructor(
    private readonly context: Context,
    private readonly tab: Tab,
    private readonly grant: Grant,
    private readonly given: Given,
  ) {}

  async act(action: Fields): Promise<Done> {
    const begun = Date.now()
    const { value, ...done } = await this.#done(action)
    if (value === undefined || !action['ref']) return done
    // Pages change a field back, also a moment later.
    await new Promise((resolve) => setTimeout(resolve, HOLD - (Date.now() - begun)))
    const held = await this.context.host.desk.records.unlessDialog(this.tab.id, this.#held(action)).catch(() => undefined)
    // One that is gone holds nothing that could be another value.
    return held === undefined ? done : { ...done, value: held }
  }

  /** What a field that was changed holds now. */
  async #held(action: Fields): Promise<string> {
    if (!CHECKS.includes(String(action['action']))) return this.#value(action)
    return String((await (await this.#element(action)).describe())['checked'] === true)
  }

  async #done(action: Fields): Promise<Done> {
    const { text } = this.given
    switch (action['action']) {
      case 'click':
      case 'double_click':
        await this.#click(await this.#place(action, 'click'), action['action'] === 'click' ? 1 : 2, String(action['button'] ?? 'left'))
        return { notes: [] }
      case 'hover':
        await this.#mouse('mouseMoved', await this.#place(action, 'hover'), 'none', 0)
        return { notes: [] }
      case 'drag':
        return this.#drag(await this.#place(action, 'drag'), await this.#place({ ref: action['to'] ?? null, at: action['to_at'] ?? null }, 'hover'))
      case 'type':
        return this.#type(action, text)
      case 'upload':
        return this.#upload(action)
      case 'download': {
        const element = action['ref'] ? await this.#element(action) : null
        const at = await this.#place(action, 'click')
        return { download: await downloadOf(this.context, this.tab, element, () => this.#click(at, 1, 'left')), notes: [] }
      }
      case 'fill':
        return this.#fill(action, text)
      case 'select':
        return this.#script(action, SELECT, action['values'] ?? [])
      case 'check':
      case 'uncheck':
        return this.#check(action, action['action'] === 'check')
      case 'press':
        if (action['ref']) await this.#click(await this.#place(action, 'type'), 1, 'left')
        if (!LEAVING.has(text)) await this.#unlessKept(action)
        await this.#press(text)
        return { notes: [] }
      case 'scroll':
        return this.#scroll(action)
      case 'dialog':
        if (!this.context.host.desk.records.dialog(this.tab.id)) throw ToolError.failed('dialog was not done: no dialog is open')
        await this.#send('Page.handleJavaScriptDialog', { accept: action['accept'] !== false, ...(action['text'] ? { promptText: text } : {}) })
        return { notes: [] }
      case 'navigate':
        return this.#navigate(String(action['url']))
      case 'reload':
        await this.#send('Page.reload')
        return this.#loaded()
      case 'back':
      case 'forward':
        return this.#go(action['action'] === 'back' ? -1 : 1)
      case 'wait':
        await new Promise((resolve) => setTimeout(resolve, Math.min(Number(action['timeout_ms'] ?? 500), 10_000)))
        return { notes: [] }
      case 'tab_switch':
        // The person's focus stays where it is unless the model asks for it.
        if (action['focus'] === true) await chrome.tabs.update(this.tab.id, { active: true })
        return { notes: [] }
      case 'tab_close':
        this.context.host.desk.check(this.grant)
        await this.context.host.desk.close(this.tab)
        return { notes: [] }
      default:
        throw ToolError.failed(`browser_action: ${String(action['action'])} is not done in this browser`)
    }
  }

  async #send(method: string, params: Fields = {}): Promise<Fields> {
    const { desk } = this.context.host
    desk.check(this.grant)
    return desk.target(this.tab).call(method, params)
  }

  async #element(action: Fields): Promise<Element> {
    const { kernel, desk } = this.context.host
    return Element.of(kernel, desk, this.tab, String(action['ref'] ?? ''))
  }

  async #place(action: Fields, what: string): Promise<Point> {
    const at = action['at'] as Fields | undefined
    if (!action['ref'] && at) return { x: Number(at['x']), y: Number(at['y']) }
    return (await this.#element(action)).locate(what)
  }

  /** Sends an event of the mouse or the keyboard. One that opens a dialog is not answered before that is, so it is not waited for. */
  async #input(method: string, params: Fields, own?: string): Promise<void> {
    const { desk } = this.context.host
    if (own) desk.own.announce(this.tab.id, own)
    await desk.records.unlessDialog(this.tab.id, this.#send(method, params))
  }

  #mouse(type: string, { x, y }: Point, button: string, clickCount: number): Promise<void> {
    const buttons = type === 'mouseReleased' || button === 'none' ? 0 : ({ left: 1, right: 2, middle: 4 }[button] ?? 1)
    const own = type === 'mousePressed' ? 'pointerdown' : undefined
    return this.#input('Input.dispatchMouseEvent', { type, x, y, button, clickCount, buttons, pointerType: 'mouse' }, own)
  }

  async #click(at: Point, times: number, button: string): Promise<void> {
    await this.#mouse('mouseMoved', at, 'none', 0)
    for (let count = 1; count <= times; count++) {
      await this.#mouse('mousePressed', at, button, count)
      await this.#mouse('mouseReleased', at, button, count)
    }
  }

  async #press(name: string): Promise<void> {
    const press = chord(name)
    if (!press) throw ToolError.failed(`There is no key ${name}; keys are named as Enter, ArrowDown, a or Control+a`)
    await this.#input('Input.dispatchKeyEvent', keyEvent(press, press.text ? 'keyDown' : 'rawKeyDown'), 'keydown')
    await this.#input('Input.dispatchKeyEvent', keyEvent({ ...press, text: '' }, 'keyUp'))
  }

  async #type(action: Fields, text: string): Promise<Done> {
    if (this.given.secret !== undefined) return this.#fill(action, text)
    await this.#click(await this.#place(action, 'type'), 1, 'left')
    await this.#unlessKept(action)
    await this.#send('Input.insertText', { text })
    if (action['submit'] !== true) return action['ref'] ? { value: await this.#value(action), notes: [] } : { notes: [] }
    await this.#press('Enter')
    return { notes: [] }
  }

  /** Keys change what a field of the user's holds, so that its mask no longer finds it: they are not sent where one has the focus. */
  async #unlessKept(action: Fields): Promise<void> {
    const { kernel, desk } = this.context.host
    // A page that a click has led away has no such field.
    const element = action['ref'] ? await this.#element(action).catch(() => null) : undefined
    if (element === null) return
    const said = element ? await element.run(FOCUS) : await this.#onPage(FOCUS)
    const of = (name: string) => (typeof said[name] === 'string' ? said[name] : '')
    const kind = kernel.call('browser.field', { kind: of('type'), autocomplete: of('autocomplete'), name: of('name'), id: of('id') })
    if (kind && desk.protects(kind)) throw ToolError.denied(`A ${kind} field of the user's has the focus: it is neither read nor typed in without a grant; Enter, Tab and Escape leave it as it is`)
    if (said['frame'] === true && desk.hasSecret) throw ToolError.failed('A frame of another site has the focus, and a secret was typed: name the element by `ref`')
  }

  async #onPage(code: string): Promise<Fields> {
    const said = await this.#send('Runtime.evaluate', { expression: `(${code.replaceAll(/^\/\/.*$/gm, '')}).call(document)`, returnByValue: true })
    return ((said['result'] as Fields | undefined)?.['value'] ?? {}) as Fields
  }

  /** What a field holds now. */
  async #value(action: Fields): Promise<string> {
    return String((await (await this.#element(action)).run(VALUE))['value'] ?? '')
  }

  /** Drags by the mouse; where the page has the browser drag (HTML), by its events. */
  async #drag(from: Point, to: Point): Promise<Done> {
    const { records } = this.context.host.desk
    await this.#send('Input.setInterceptDrags', { enabled: true })
    try {
      records.takeDrag(this.tab.id)
      await this.#mouse('mouseMoved', from, 'none', 0)
      await this.#mouse('mousePressed', from, 'left', 1)
      for (let step = 1; step <= DRAG_STEPS; step++) {
        const part = step / DRAG_STEPS
        await this.#mouse('mouseMoved', { x: from.x + (to.x - from.x) * part, y: from.y + (to.y - from.y) * part }, 'left', 0)
        const data = records.takeDrag(this.tab.id)
        if (data === undefined) continue
        for (const type of ['dragEnter', 'dragOver', 'drop']) await this.#input('Input.dispatchDragEvent', { type, x: to.x, y: to.y, data })
        break
      }
      await this.#mouse('mouseReleased', to, 'left', 1)
    } finally {
      await this.context.host.desk.target(this.tab).call('Input.setInterceptDrags', { enabled: false })
    }
    return { notes: [] }
  }

  async #upload(action: Fields): Promise<Done> {
    const element = await this.#element(action)
    const { file } = this.given
    if (!file) throw ToolError.failed('browser_action: `path` is missing: the file')
    this.context.host.desk.check(this.grant)
    await put(element, file)
    return { value: await this.#value(action), notes: [] }
  }

  async #fill(action: Fields, text: string): Promise<Done> {
    const element = await this.#element(action)
    const { desk, settings } = this.context.host
    const { secret } = this.given
    // Between the plan and now a person may have been asked: whose the field is, is looked at again.
    if (secret !== undefined) {
      settings.secrets.get(secret, await element.sites())
      desk.hasSecret = true
    }
    desk.check(this.grant)
    const how = secret === undefined ? 'by keys' : action['action'] === 'type' ? 'add' : 'replace'
    const ready = await element.run(FILL, text, how)
    if (ready['typed'] === true) {
      if (text) await this.#send('Input.insertText', { text })
      else if (ready['empty'] !== true) await this.#press('Delete')
    }
    if (action['submit'] === true) {
      await this.#press('Enter')
      return { notes: [] }
    }
    return { value: String((await element.run(VALUE))['value'] ?? ''), notes: [] }
  }

  async #script(action: Fields, code: string, ...values: Parameters<Element['run']>[1][]): Promise<Done> {
    const element = await this.#element(action)
    this.context.host.desk.check(this.grant)
    const { chosen } = await element.run(code, ...values)
    return { value: String((await element.run(VALUE))['value'] ?? ''), ...(typeof chosen === 'string' && { chosen }), notes: [] }
  }

  async #check(action: Fields, wanted: boolean): Promise<Done> {
    const element = await this.#element(action)
    if ((await element.describe())['checked'] === wanted) return { value: String(wanted), notes: ['It was already in that state.'] }
    await this.#click(await element.locate('click'), 1, 'left')
    return { value: String((await element.describe())['checked'] === true), notes: [] }
  }

  async #scroll(action: Fields): Promise<Done> {
    const by = (action['by'] ?? { x: 0, y: 600 }) as Fields
    if (action['ref']) {
      const element = await this.#element(action)
      this.context.host.desk.check(this.grant)
      const moved = action['by'] ? await element.run(SCROLL, by['x'] ?? 0, by['y'] ?? 0) : await element.run(SCROLL, null, null)
      return { notes: moved['moved'] === true ? [] : ['Nothing moved: it is already at the end.'] }
    }
    const said = await this.#send('Runtime.evaluate', { expression: `(${SCROLL.replace(/^\/\/.*$/m, '')}).call(document, ${Number(by['x'])}, ${Number(by['y'])})`, returnByValue: true })
    const moved = ((said['result'] as Fields)['value'] ?? {}) as Fields
    return { notes: moved['moved'] === true ? [] : ['Nothing moved: it is already at the end.'] }
  }

  async #navigate(url: string): Promise<Done> {
    const { errorText } = await this.#send('Page.navigate', { url })
    if (errorText && errorText !== 'net::ERR_ABORTED') throw ToolError.failed(notArrived(url, errorText))
    return this.#loaded()
  }

  async #go(steps: number): Promise<Done> {
    const { currentIndex, entries } = await this.#send('Page.getNavigationHistory')
    const entry = (entries as Fields[])[Number(currentIndex) + steps]
    if (!entry) throw ToolError.failed('There is no page before or after this one')
    await this.#send('Page.navigateToHistoryEntry', { entryId: entry['id'] ?? 0 })
    return this.#loaded()
  }

  #loaded(): Promise<Done> {
    return loaded(this.context, this.tab).then(() => ({ notes: [] }))
  }
}

/** Waits until a tab's document is complete, as long as pages may take. */
export async function loaded({ host: { desk } }: Context, tab: Tab): Promise<void> {
  for (const begun = Date.now(); Date.now() - begun < LOAD; ) {
    const said = await desk.records.unlessDialog(tab.id, desk.target(tab).call('Runtime.evaluate', { expression: 'document.readyState', returnByValue: true }))
    if ((said?.['result'] as Fields | undefined)?.['value'] === 'complete') return
    if (desk.records.dialog(tab.id)) return
    await new Promise((resolve) => setTimeout(resolve, PAUSE))
  }
}

function keyEvent({ key, code, number, text, modifiers }: Press, type: string): Fields {
  return { type, key, code, windowsVirtualKeyCode: number, text, modifiers }
}
