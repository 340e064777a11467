/** What the accessibility tree does not say of elements: which listen for clicks, and what of the user's fields hold. */
import type { Kernel } from '../../kernel/kernel'
import type { Fields } from '../../kernel/types'
import type { Target } from './target'

/** Elements whose clicks are of what is in them. */
const OUTER = new Set(['LABEL', 'HTML', 'BODY', '#text', '#document'])
const FIELDS = new Set(['INPUT', 'TEXTAREA', 'SELECT'])
/** How far around an element the one is looked for that its pointer is of. */
const MAX_AROUND = 40

export interface Details {
  clickable: Set<number>
  fields: Map<number, string>
}

/** A document of a DOM snapshot; numbers lead to its table of texts. */
interface Document {
  nodes: { parentIndex: number[]; nodeName: number[]; backendNodeId: number[]; attributes: number[][]; isClickable?: { index: number[] } }
  layout: { nodeIndex: number[]; styles: number[][] }
}

/** The details of all frames that one process has. Without an answer there are none: the page is going. */
export async function detailsOf(kernel: Kernel, target: Target, session: string | undefined): Promise<Details> {
  const details: Details = { clickable: new Set(), fields: new Map() }
  const taken = await target.call('DOMSnapshot.captureSnapshot', { computedStyles: ['cursor'] }, session).catch(() => ({}) as Fields)
  const texts = (taken['strings'] ?? []) as string[]
  for (const document of (taken['documents'] ?? []) as unknown as Document[]) add(kernel, details, document, texts)
  return details
}

function add(kernel: Kernel, { clickable, fields }: Details, { nodes, layout }: Document, texts: string[]): void {
  const name = (place: number) => texts[nodes.nodeName[place] ?? -1] ?? ''
  const id = (place: number) => nodes.backendNodeId[place] ?? 0
  for (const place of nodes.isClickable?.index ?? []) if (!OUTER.has(name(place))) clickable.add(id(place))
  // The pointer may be that of an element around it, which is what is clicked.
  const isInherited = (place: number) => {
    let at = nodes.parentIndex[place] ?? -1
    for (let left = MAX_AROUND; at >= 0 && left > 0; left--) {
      if (clickable.has(id(at))) return true
      at = nodes.parentIndex[at] ?? -1
    }
    return false
  }
  for (const [number, place] of layout.nodeIndex.entries()) {
    const cursor = texts[layout.styles[number]?.[0] ?? -1]
    if (cursor === 'pointer' && !OUTER.has(name(place)) && !isInherited(place)) clickable.add(id(place))
  }
  for (const [place, list] of nodes.attributes.entries()) {
    if (!FIELDS.has(name(place))) continue
    const get = (wanted: string) => {
      const at = list.findIndex((text, number) => number % 2 === 0 && texts[text] === wanted)
      return at < 0 ? '' : (texts[list[at + 1] ?? -1] ?? '')
    }
    const kind = kernel.call('browser.field', { kind: get('type'), autocomplete: get('autocomplete'), name: get('name'), id: get('id') })
    if (kind) fields.set(id(place), kind)
  }
}
