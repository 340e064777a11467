import MarkdownIt, { type Token } from 'markdown-it'
import { createElement, memo, type ReactNode } from 'react'
import { Code } from './Code'

/**
 * Markdown as elements, made from its tokens: no HTML text is ever parsed, so what a model writes cannot become code. HTML in it is
 * shown as it stands. Pictures are links: nothing is asked of other hosts by looking at a text.
 */
const parser = new MarkdownIt({ html: false, linkify: true, typographer: false })

/** Items of task lists begin with a box, as in the terminal. */
parser.core.ruler.push('tasks', (state) => {
  state.tokens.forEach((token, at) => {
    const text = token.children?.[0]
    if (token.type !== 'inline' || text?.type !== 'text' || state.tokens[at - 2]?.type !== 'list_item_open') return
    text.content = text.content.replace(/^\[([ xX])\] /, (_, mark: string) => (mark === ' ' ? '☐ ' : '☑ '))
  })
})

type Props = Record<string, unknown>

const PLAIN = new Set(['p', 'em', 'strong', 's', 'ul', 'ol', 'li', 'blockquote', 'h1', 'h2', 'h3', 'h4', 'h5', 'h6', 'thead', 'tbody', 'tr', 'th', 'td'])

/** Headings of a text stand below those of the page, whatever rank they begin with. */
const HEADING = /^h[1-6]$/

export function isSafe(address: string): boolean {
  try {
    return ['http:', 'https:', 'mailto:'].includes(new URL(address).protocol)
  } catch {
    return false
  }
}

function link(address: string, key: number, children: ReactNode): ReactNode {
  if (!isSafe(address)) return <span key={key}>{children}</span>
  return (
    <a key={key} href={address} target="_blank" rel="noopener noreferrer nofollow">
      {children}
    </a>
  )
}

/** Emphasis that is nested deeper is not shown: React walks elements by recursion. The parser has the same limit for quotes and lists. */
const MAX_NESTING = 100

/** Elements of the tokens up to where the nesting ends. */
function elements(tokens: Token[]): ReactNode[] {
  const stack: { token: Token | null; children: ReactNode[] }[] = [{ token: null, children: [] }]
  const top = () => stack[stack.length - 1] as { token: Token | null; children: ReactNode[] }
  let flat = 0
  tokens.forEach((token, key) => {
    if (token.nesting === 1 && stack.length > MAX_NESTING) {
      flat += 1
    } else if (token.nesting === -1 && flat > 0) {
      flat -= 1
    } else if (token.nesting === 1) {
      stack.push({ token, children: [] })
    } else if (token.nesting === -1) {
      if (stack.length < 2) return
      const { token: opened, children } = stack.pop() as { token: Token; children: ReactNode[] }
      top().children.push(closed(opened, children, key))
    } else {
      top().children.push(single(token, key))
    }
  })
  // Unclosed elements end here.
  while (stack.length > 1) {
    const { token, children } = stack.pop() as { token: Token; children: ReactNode[] }
    top().children.push(closed(token, children, -stack.length))
  }
  return top().children
}

function closed(token: Token, children: ReactNode[], key: number): ReactNode {
  if (token.hidden) return children
  if (token.tag === 'a') return link(String(token.attrGet('href') ?? ''), key, children)
  if (token.tag === 'table') {
    return (
      <div className="table" key={key} tabIndex={0} role="region" aria-label="Table">
        <table>{children}</table>
      </div>
    )
  }
  if (!PLAIN.has(token.tag)) return children
  const props: Props = { key }
  if (token.tag === 'ol') {
    const start = Number(token.attrGet('start'))
    if (start) props['start'] = start
  }
  const align = /text-align:(left|right|center)/.exec(String(token.attrGet('style') ?? ''))?.[1]
  if (align) props['className'] = `align-${align}`
  if (HEADING.test(token.tag)) return createElement('h3', { ...props, className: token.tag }, children)
  // As one argument: there may be more of them than a call takes.
  return createElement(token.tag, props, children)
}

function single(token: Token, key: number): ReactNode {
  switch (token.type) {
    case 'inline':
      return <Inline key={key} tokens={token.children ?? []} />
    case 'text':
      return token.content
    case 'code_inline':
      return <code key={key}>{token.content}</code>
    case 'fence':
    case 'code_block':
      return <Code key={key} text={token.content.replace(/\n$/, '')} language={token.info.trim().split(/\s+/)[0] ?? ''} />
    case 'softbreak':
      return '\n'
    case 'hardbreak':
      return <br key={key} />
    case 'hr':
      return <hr key={key} />
    case 'image':
      return link(String(token.attrGet('src') ?? ''), key, token.content || 'picture')
    default:
      return token.content
  }
}

function Inline({ tokens }: { tokens: Token[] }) {
  return <>{elements(tokens)}</>
}

export const Markdown = memo(function Markdown({ text }: { text: string }) {
  return <div className="markdown">{elements(parser.parse(text, {}))}</div>
})
