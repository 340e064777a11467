import type { Element, Root, RootContent } from 'hast'
import { memo, useEffect, useState, type ReactNode } from 'react'
import { Copy } from './Copy'

type Highlight = (text: string, language: string) => Root | null

let loaded: Highlight | null = null
let loading: Promise<Highlight> | null = null

/** Longer texts are shown in one colour. */
const MAX_COLOURED = 40_000

function load(): Promise<Highlight> {
  loading ??= import('./highlight').then((module) => {
    loaded = module.highlight
    return loaded
  })
  return loading
}

/** The highlighter, once it is there. */
export function useHighlight(wanted: boolean): Highlight | null {
  const [known, setKnown] = useState<{ run: Highlight } | null>(loaded && { run: loaded })
  useEffect(() => {
    if (wanted && !known) void load().then((run) => setKnown({ run }))
  }, [wanted, known])
  return known?.run ?? null
}

function nodes(children: RootContent[]): ReactNode[] {
  return children.map((child, key) => {
    if (child.type === 'text') return child.value
    if (child.type !== 'element') return null
    const names = (child as Element).properties['className']
    return (
      <span key={key} className={Array.isArray(names) ? names.join(' ') : undefined}>
        {nodes((child as Element).children)}
      </span>
    )
  })
}

/** A text in the colours of its language. */
export const Coloured = memo(function Coloured({ text, language }: { text: string; language: string }) {
  const wanted = language !== '' && text.length <= MAX_COLOURED
  const run = useHighlight(wanted)
  const root = wanted && run ? run(text, language) : null
  return <>{root ? nodes(root.children) : text}</>
})

export function Code({ text, language }: { text: string; language: string }) {
  return (
    <div className="code">
      <div className="code-head">
        <span>{language || 'text'}</span>
        <Copy text={text} />
      </div>
      <pre tabIndex={0}>
        <code>
          <Coloured text={text} language={language} />
        </code>
      </pre>
    </div>
  )
}

const ENDINGS: Record<string, string> = {
  ts: 'typescript', tsx: 'typescript', mts: 'typescript', js: 'javascript', jsx: 'javascript', mjs: 'javascript', cjs: 'javascript',
  rs: 'rust', py: 'python', go: 'go', java: 'java', kt: 'kotlin', c: 'c', h: 'c', cc: 'cpp', cpp: 'cpp', hpp: 'cpp', cs: 'csharp',
  rb: 'ruby', php: 'php', swift: 'swift', sh: 'bash', bash: 'bash', zsh: 'bash', json: 'json', yml: 'yaml', yaml: 'yaml', toml: 'ini',
  ini: 'ini', md: 'markdown', html: 'xml', xml: 'xml', svg: 'xml', css: 'css', scss: 'scss', sql: 'sql', lua: 'lua', diff: 'diff', patch: 'diff',
}

/** The language of a file, by its ending. */
export function languageOf(path: string): string {
  return ENDINGS[path.split('.').pop()?.toLowerCase() ?? ''] ?? ''
}
