import type { Kernel } from '../../kernel/kernel'
import type { FrameSite, Inside, PageNode } from '../../kernel/operations'
import type { Fields, Json } from '../../kernel/types'
import { ToolError } from '../tool'
import type { Desk, Tab } from './desk'
import { type Details, detailsOf } from './details'
import { dialogError } from './shared'
import type { Frame, Target } from './target'

/** Roles that are used, not read. */
const ACTIVE = new Set([
  'button', 'link', 'textbox', 'searchbox', 'combobox', 'checkbox', 'radio', 'switch', 'slider', 'spinbutton', 'option', 'menuitem', 'menuitemcheckbox',
  'menuitemradio', 'tab', 'treeitem', 'listbox', 'date', 'inputtime', 'colorwell', 'canvas',
])
/** What says nothing beside the text that is there already. */
const REPEATING = new Set(['InlineTextBox', 'LineBreak', 'ListMarker'])
/** States that are worth a word. */
const STATES = new Set(['checked', 'disabled', 'focused', 'modal', 'pressed', 'readonly', 'required', 'selected', 'busy'])
/** The most elements of a page that are described. */
const MAX_NODES = 20_000

/** Frames within frames. */
const MAX_DEPTH = 8

/** What was seen of a page. */
interface Seen {
  url: string
  text: string
  stable: boolean
}

/** Takes a page in. Behind a dialog, one that opens meanwhile too, nothing answers. */
export async function observe(kernel: Kernel, desk: Desk, tab: Tab, since = desk.records.mark()): Promise<Seen> {
  const seen = await observed(kernel, desk, tab, since)
  const open = desk.dialog(tab)
  if (seen) return seen
  throw open ? dialogError(open) : ToolError.failed('A dialog was open, and is not any more: look again')
}

/** The same; nothing where a dialog is open, or opens meanwhile. */
export async function observed(kernel: Kernel, desk: Desk, tab: Tab, since: number): Promise<Seen | undefined> {
  if (desk.records.dialog(tab.id)) return undefined
  return desk.records.unlessDialog(tab.id, taken(kernel, desk, tab, since))
}

/** Frames of other sites and closed shadow roots included: the tree goes to the kernel, which keeps references and compares. */
async function taken(kernel: Kernel, desk: Desk, tab: Tab, since: number): Promise<Seen> {
  const target = desk.target(tab)
  const frames = await target.frames()
  const [main] = frames
  const sessions = [...new Set(frames.map((frame) => frame.session))]
  const [parts, sites, ...all] = await Promise.all([partsOf(target, frames), sitesOf(target, frames), ...sessions.map((session) => detailsOf(kernel, target, session))])
  const details = new Map(sessions.map((session, place) => [session, all[place]]))
  const nodes: Found[] = []
  const inside: Inside[] = []
  add({ nodes, parts, sites, inside }, main.id, 0, 0)
  const hide = (text: string) => desk.hide(text)
  const seen = kernel.call('browser.observe', {
    tab: tab.name,
    url: main.url,
    title: hide(nodes[0]?.node.name ?? ''),
    nodes: nodes.map(({ node, session }) => described(node, details.get(session), desk)),
    origin: sites.get(main.id)?.origin ?? '',
    frames: inside,
    rules: desk.rules(),
    requests: desk.records.requests(tab.id, since).map(({ method, url: asked, status }) => ({ method, url: asked, status })),
    errors: desk.records.lines(tab.id, since).filter((line) => line.level === 'error').map((line) => hide(line.text)),
    downloads: desk.records.downloads(tab.id, since),
  })
  return { url: main.url, ...seen }
}

/** An element, with the session of its frame. */
interface Found {
  node: PageNode
  session: string | undefined
}

/** The tree of one frame. */
interface Part {
  frame: Frame
  tree: AxNode[]
  /** Frames in it, by the node of the element that holds each. */
  inside: Map<number, string>
}

/** The trees of all frames that are still there. */
async function partsOf(target: Target, [main, ...others]: [Frame, ...Frame[]]): Promise<Map<string, Part>> {
  const frames = [main, ...others]
  const part = async (frame: Frame): Promise<Part> => {
    const children = frames.filter((it) => it.parent === frame.id)
    const [{ nodes }, ...owners] = await Promise.all([
      target.call('Accessibility.getFullAXTree', { frameId: frame.id }, frame.session),
      ...children.map((child) => target.call('DOM.getFrameOwner', { frameId: child.id }, frame.session).catch(() => ({}) as Fields)),
    ])
    const inside = new Map(children.map((child, place) => [Number(owners[place]?.['backendNodeId'] ?? 0), child.id]))
    return { frame, tree: (nodes ?? []) as unknown as AxNode[], inside }
  }
  const [first, ...rest] = await Promise.all([part(main), ...others.map((frame) => part(frame).catch(() => null))])
  return new Map([first, ...rest].filter((it) => it !== null).map((it) => [it.frame.id, it]))
}

interface AxValue {
  value?: Json
}
interface AxNode {
  nodeId: string
  ignored?: boolean
  role?: AxValue
  name?: AxValue
  value?: AxValue
  childIds?: string[]
  backendDOMNodeId?: number
  properties?: { name: string; value: AxValue }[]
}

/** Whose the frames are. One that does not say it is nobody's. */
async function sitesOf(target: Target, frames: Frame[]): Promise<Map<string, FrameSite>> {
  const nobody = { origin: 'null', url: '' }
  return new Map(await Promise.all(frames.map(async (frame) => [frame.id, await target.site(frame).catch(() => nobody)] as const)))
}

/** A page that is put together of its frames. */
interface Whole {
  nodes: Found[]
  parts: Map<string, Part>
  sites: Map<string, FrameSite>
  /** Which of the nodes are of which frames. */
  inside: Inside[]
}

/** Adds what a frame shows, and the frames in it where they are. */
function add(whole: Whole, id: string, depth: number, level: number): void {
  const { nodes, parts, sites, inside } = whole
  const part = parts.get(id)
  if (!part) return
  const { document, session } = part.frame
  const byId = new Map(part.tree.map((node) => [node.nodeId, node]))
  const root = part.tree[0]
  const open: [AxNode, number][] = root ? [[root, depth]] : []
  for (let next = open.pop(); next && nodes.length < MAX_NODES; next = open.pop()) {
    const [node, at] = next
    const role = String(node.role?.value ?? '')
    if (REPEATING.has(role)) continue
    const made = nodeOf(node, at, document)
    nodes.push({ node: made, session })
    const frame = part.inside.get(made.key.node)
    if (frame !== undefined && level < MAX_DEPTH) {
      const holder = nodes.length - 1
      add(whole, frame, at + 1, level + 1)
      inside.push({ holder, end: nodes.length, site: sites.get(frame) ?? { origin: 'null', url: '' } })
      continue
    }
    // What stands in a field is its value.
    if (made.role === 'textbox' && made.value !== undefined) continue
    for (const child of (node.childIds ?? []).toReversed()) {
      const found = byId.get(child)
      if (found) open.push([found, at + 1])
    }
  }
}

function nodeOf(node: AxNode, depth: number, document: string): PageNode {
  const said = String(node.role?.value ?? '').toLowerCase()
  const role = node.ignored ? 'none' : said === 'statictext' ? 'text' : said
  const value = node.value?.value
  const properties = node.properties ?? []
  const isFocusable = properties.some(({ name, value: on }) => name === 'focusable' && on.value === true)
  return {
    depth,
    key: { document, node: node.backendDOMNodeId ?? 0 },
    role,
    name: String(node.name?.value ?? ''),
    ...(typeof value === 'string' || typeof value === 'number' ? { value: String(value) } : {}),
    states: properties.flatMap(stateOf),
    actionable: role !== 'text' && role !== 'rootwebarea' && (ACTIVE.has(role) || isFocusable),
  }
}

function stateOf({ name, value: { value } }: { name: string; value: AxValue }): string[] {
  if (name === 'expanded') return [value === true ? 'expanded' : 'collapsed']
  if ((name === 'checked' || name === 'pressed') && value === 'mixed') return ['mixed']
  return STATES.has(name) && (value === true || value === 'true') ? [name] : []
}

/** An element with what else is known of it, and without what is the user's. */
function described(node: PageNode, details: Details | undefined, desk: Desk): PageNode {
  const { value, ...rest } = { ...node, name: desk.hide(node.name), actionable: node.actionable || (node.role !== 'text' && details?.clickable.has(node.key.node) === true) }
  const field = details?.fields.get(node.key.node)
  const said = value === undefined ? {} : { value: desk.hide(value) }
  if (!field) return { ...rest, ...said }
  if (!desk.protects(field)) return { ...rest, field, ...said }
  // Bullets say how long a password is.
  return field === 'password' || !value ? { ...rest, field } : { ...rest, field, value: '(not shown)' }
}
