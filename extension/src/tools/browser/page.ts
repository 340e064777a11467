import type { Kernel } from '../../kernel/kernel'
import type { PageNode } from '../../kernel/operations'
import type { Fields, Json } from '../../kernel/types'
import type { Desk, Tab } from './desk'

/** Roles that are used, not read. */
const ACTIVE = new Set([
  'button', 'link', 'textbox', 'searchbox', 'combobox', 'checkbox', 'radio', 'switch', 'slider', 'spinbutton', 'option', 'menuitem', 'menuitemcheckbox',
  'menuitemradio', 'tab', 'treeitem', 'listbox', 'canvas',
])
/** What says nothing beside the text that is there already. */
const REPEATING = new Set(['InlineTextBox', 'LineBreak', 'ListMarker'])
/** States that are worth a word. */
const STATES = new Set(['checked', 'disabled', 'focused', 'modal', 'pressed', 'readonly', 'required', 'selected', 'busy'])
/** The most elements of a page that are described. */
const MAX_NODES = 20_000

/** Takes a page in: its tree goes to the kernel, which keeps references and compares. Answers with its address. */
export async function observe(kernel: Kernel, desk: Desk, tab: Tab, since = desk.records.mark()): Promise<{ url: string; text: string; stable: boolean }> {
  const target = desk.target(tab)
  const [tree, frames] = await Promise.all([target.call('Accessibility.getFullAXTree'), target.call('Page.getFrameTree')])
  const frame = ((frames['frameTree'] as Fields)['frame'] ?? {}) as Fields
  const url = String(frame['url'] ?? '')
  const nodes = nodesOf((tree['nodes'] ?? []) as unknown as AxNode[], String(frame['loaderId'] ?? ''))
  const fields = await fieldsOf(kernel, desk, tab, nodes)
  const seen = kernel.call('browser.observe', {
    tab: tab.name,
    url,
    title: nodes[0]?.name ?? '',
    nodes: nodes.map((node) => masked(node, fields.get(node.key.node))),
    requests: desk.records.requests(tab.id, since).map(({ method, url: asked, status }) => ({ method, url: asked, status })),
    errors: desk.records.lines(tab.id, since).filter((line) => line.level === 'error').map((line) => line.text),
  })
  return { url, ...seen }
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

function nodesOf(tree: AxNode[], document: string): PageNode[] {
  const byId = new Map(tree.map((node) => [node.nodeId, node]))
  const nodes: PageNode[] = []
  const root = tree[0]
  const open: [AxNode, number][] = root ? [[root, 0]] : []
  for (let next = open.pop(); next && nodes.length < MAX_NODES; next = open.pop()) {
    const [node, depth] = next
    const role = String(node.role?.value ?? '')
    if (REPEATING.has(role)) continue
    const made = nodeOf(node, depth, document)
    nodes.push(made)
    // What stands in a field is its value.
    if (made.role === 'textbox' && made.value !== undefined) continue
    for (const id of (node.childIds ?? []).toReversed()) {
      const child = byId.get(id)
      if (child) open.push([child, depth + 1])
    }
  }
  return nodes
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

/** What of the user's the fields of a page hold, by their nodes. */
async function fieldsOf(kernel: Kernel, desk: Desk, tab: Tab, nodes: PageNode[]): Promise<Map<number, string>> {
  const found = new Map<number, string>()
  const typed = nodes.filter((node) => node.role === 'textbox' || node.role === 'searchbox' || node.role === 'combobox' || node.role === 'spinbutton')
  const described = await Promise.all(typed.map(async ({ key }) => [key.node, await attributesOf(desk, tab, key.node)] as const))
  for (const [node, attributes] of described) {
    const kind = kernel.call('browser.field', attributes)
    if (kind) found.set(node, kind)
  }
  return found
}

async function attributesOf(desk: Desk, tab: Tab, node: number): Promise<{ kind: string; autocomplete: string; name: string; id: string }> {
  const none = { kind: '', autocomplete: '', name: '', id: '' }
  try {
    const described = await desk.target(tab).call('DOM.describeNode', { backendNodeId: node })
    const list = ((described['node'] as Fields)['attributes'] ?? []) as string[]
    const get = (name: string) => list[list.findIndex((it, place) => place % 2 === 0 && it === name) + 1] ?? ''
    const has = (name: string) => list.some((it, place) => place % 2 === 0 && it === name)
    const of = (name: string) => (has(name) ? get(name) : '')
    return { kind: of('type'), autocomplete: of('autocomplete'), name: of('name'), id: of('id') }
  } catch {
    // It is gone by now.
    return none
  }
}

function masked(node: PageNode, field: string | undefined): PageNode {
  if (!field) return node
  const { value, ...rest } = node
  // Bullets say how long a password is.
  return field === 'password' || !value ? { ...rest, field } : { ...rest, field, value: '(not shown)' }
}
