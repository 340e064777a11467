import { memo, useMemo, useState, useSyncExternalStore, type ReactNode } from 'react'
import type { CommandOutputDetails, Details, DiffDetails, Entry, FileListDetails, MessageMetadata, Shortened } from '../api'
import { bytes, duration, plural, within } from '../lib/format'
import { request } from '../lib/http'
import { go } from '../lib/router'
import { live, message } from '../state/live'
import { Coloured, languageOf } from './Code'
import { CommandLine } from './CommandLine'
import { Copy } from './Copy'
import { Counts, Diff } from './Diff'
import { compare } from './diff'
import { Icon, type IconName } from './Icon'
import { Ansi, FOLDED_LINES } from './Terminal'

/** A text longer than this is saved to a file instead of being shown. */
const MAX_SHOWN = 1024 * 1024

const ICONS: Record<string, IconName> = {
  bash: 'terminal', shell: 'terminal', edit: 'edit', write: 'edit', multiedit: 'edit', apply_patch: 'edit', patch: 'edit', read: 'file', list: 'list',
  glob: 'list', grep: 'search', task: 'agent', todowrite: 'todo', todoread: 'todo', webfetch: 'globe', websearch: 'globe', question: 'help',
}

interface Cut {
  /** Whether only the beginning of the text at a place is known. */
  isCut(at: string): boolean
  /** The text at a place, whole if it was fetched. */
  text(at: string, known: string): string
  /** A button for what is cut at one of the places. */
  more(...places: string[]): ReactNode
}

/** Long texts of an entry: cut at first, fetched when asked for. */
function useCut(entry: Entry): Cut {
  const [whole, setWhole] = useState<Record<string, string>>({})
  const [state, setState] = useState<string | null>(null)
  const cut: Shortened[] = entry.shortened ?? []
  const fetchAll = async (wanted: Shortened[]) => {
    setState('loading')
    try {
      const texts = await Promise.all(
        wanted.map(async (one) => [one.at, await (await request(`/outrigger/v1/conversation/${entry.conversation}/content/${one.ref}`)).text()] as const),
      )
      setWhole((known) => ({ ...known, ...Object.fromEntries(texts) }))
      setState(null)
    } catch (error) {
      setState(message(error))
    }
  }
  return {
    isCut: (at) => whole[at] === undefined && cut.some((one) => one.at === at),
    text: (at, known) => whole[at] ?? known,
    more: (...places) => {
      const wanted = cut.filter((one) => places.includes(one.at) && whole[one.at] === undefined)
      if (!wanted.length) return null
      const size = wanted.reduce((sum, one) => sum + one.bytes, 0)
      const isLarge = size > MAX_SHOWN
      return (
        <div className="cut" role="status">
          <span>{state && state !== 'loading' ? state : `The beginning of ${bytes(size)}.`}</span>
          <button type="button" className="link" disabled={state === 'loading'} onClick={() => void (isLarge ? save(entry, wanted) : fetchAll(wanted))}>
            {state === 'loading' ? 'Loading …' : isLarge ? 'Save all of it' : 'Show all of it'}
          </button>
        </div>
      )
    },
  }
}

async function save(entry: Entry, wanted: Shortened[]): Promise<void> {
  for (const one of wanted) {
    const response = await request(`/outrigger/v1/conversation/${entry.conversation}/content/${one.ref}`)
    const url = URL.createObjectURL(new Blob([await response.text()], { type: 'text/plain' }))
    const anchor = document.createElement('a')
    anchor.href = url
    anchor.download = `${entry.message.metadata.tool_name ?? 'text'}.txt`
    anchor.click()
    setTimeout(() => URL.revokeObjectURL(url), 10_000)
  }
}

function text(value: unknown): string | null {
  return typeof value === 'string' ? value : null
}

function field(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[name] : undefined
}

/** What a call is about, in one line: from fields that every tool of its kind has, never from what it printed. */
function subject(metadata: MessageMetadata, directory: string): string {
  const input = metadata.input
  for (const name of ['command', 'filePath', 'pattern', 'path', 'url', 'query', 'description', 'title']) {
    const value = text(field(input, name))
    if (value) return within(value.split('\n')[0] ?? '', directory)
  }
  return metadata.title ?? ''
}

/** How far a list of todos is. */
function progress(todos: unknown): string | null {
  if (!Array.isArray(todos)) return null
  const done = todos.filter((todo) => field(todo, 'status') === 'completed').length
  return `${done} of ${todos.length} done`
}

/** Whether a call runs only when a person has answered. */
function useWaits(entry: Entry): boolean {
  const id = entry.message.metadata.tool_use_id
  return useSyncExternalStore(live.list.subscribe, () => entry.state === 'running' && live.waitingOf(entry.conversation).some((one) => one.request.tool?.callID === id), never)
}

const never = () => false

/** A tool call: one card, whatever its tool is. */
export const ToolCard = memo(function ToolCard({ entry, directory }: { entry: Entry; directory: string }) {
  const { metadata, content, messageType } = entry.message
  const isRunning = entry.state === 'running'
  const failed = metadata.is_error === true
  const details = metadata.details
  const all: Details[] = [...(details ? [details] : []), ...(metadata.changes ?? [])]
  const name = metadata.tool_name ?? messageType
  const opens = all.some((one) => one.type !== 'fileList') || Boolean(field(metadata, 'todos')) || failed || isRunning
  const [open, setOpen] = useState<boolean | null>(null)
  const waits = useWaits(entry)
  // The question below has the whole call.
  const isOpen = open ?? (opens && !waits)
  const state = waits ? 'waits' : isRunning ? 'running' : failed ? 'failed' : 'done'
  const about = subject(metadata, directory) || progress(field(metadata, 'todos')) || metadata.summary || content.split('\n')[0] || ''
  return (
    <section className={`card tool ${state}`} aria-label={`${name} ${about}`}>
      <button type="button" className="card-head" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        <span className="card-icon">{waits ? <Icon name="shield" /> : isRunning ? <span className="spinner" /> : <Icon name={failed ? 'warn' : (ICONS[name] ?? 'tool')} />}</span>
        <span className="card-name">{name}</span>
        <span className={`card-about${text(field(metadata.input, 'command')) ? ' mono' : ''}`}>{about}</span>
        {metadata.plugin && <span className="tag">{metadata.plugin}</span>}
        <Facts metadata={metadata} state={waits ? 'waits for you' : isRunning ? 'running' : null} />
        <span className="chevron">
          <Icon name={isOpen ? 'down' : 'right'} />
        </span>
      </button>
      {isOpen && <Body entry={entry} all={all} directory={directory} />}
    </section>
  )
})

function Facts({ metadata, state }: { metadata: MessageMetadata; state: string | null }) {
  const details = metadata.details
  const exit = details?.type === 'commandOutput' ? details.data.exitCode : undefined
  return (
    <span className="card-facts">
      {details?.type === 'fileList' && <span>{plural(details.data.files.length, 'file')}</span>}
      {exit !== undefined && exit !== 0 && <span className="bad">{exit === null ? 'killed' : `exit ${exit}`}</span>}
      {metadata.is_error && (exit === undefined || metadata.refused_by) && <span className="bad">{metadata.refused_by ? `refused by ${metadata.refused_by}` : 'failed'}</span>}
      {state ? <span>{state}</span> : metadata.duration_ms !== undefined && <span>{duration(metadata.duration_ms)}</span>}
    </span>
  )
}

function Body({ entry, all, directory }: { entry: Entry; all: Details[]; directory: string }) {
  const cut = useCut(entry)
  const { metadata, content } = entry.message
  const todos = field(metadata, 'todos')
  const answers = field(metadata, 'answers')
  const child = metadata.conversation ?? text(field(metadata.progress, 'sessionId')) ?? undefined
  const printed = all.find((one) => one.type === 'commandOutput')
  const shownError = metadata.is_error && !printed
  const reason = metadata.is_error && printed ? reasonBeside(text(metadata.output) ?? content, printed) : null
  return (
    <div className="card-body">
      {all.map((one, key) => (
        <OneDetail key={key} details={one} cut={cut} at={key === 0 && metadata.details ? '/metadata/details' : `/metadata/changes/${key - (metadata.details ? 1 : 0)}`} metadata={metadata} directory={directory} />
      ))}
      {Array.isArray(todos) && <Todos todos={todos} />}
      {Array.isArray(answers) && <Answers metadata={metadata} answers={answers} />}
      {child && (
        <button type="button" className="child" onClick={() => go({ view: 'conversation', id: child, tab: 'talk' })}>
          <Icon name="agent" /> Open the subagent’s conversation <Icon name="right" />
        </button>
      )}
      {entry.state === 'running' && !all.length && <Progress metadata={metadata} />}
      {reason && <pre className="output failed" tabIndex={0}>{reason}</pre>}
      {shownError && <pre className="output failed" tabIndex={0}>{cut.text('/metadata/output', text(metadata.output) ?? content)}</pre>}
      {!all.length && !shownError && entry.state === 'done' && !Array.isArray(todos) && !Array.isArray(answers) && (
        <>
          <Output text={cut.text('/metadata/output', text(metadata.output) ?? content)} isBeginning={cut.isCut('/metadata/output')} />
          {cut.more('/metadata/output', '/content')}
        </>
      )}
      <Input metadata={metadata} />
    </div>
  )
}

/** Why a command's call failed, where its output does not say so: a plugin may fail a call after the command ran. */
export function reasonBeside(error: string, printed: CommandOutputDetails): string | null {
  const output = `${printed.data.stdout}\n${printed.data.stderr}`
  const reason = error.trim()
  return reason && !output.includes(reason) && !(printed.data.stdout.trim() && reason.startsWith(printed.data.stdout.trim())) ? reason : null
}

function OneDetail({ details, cut, at, metadata, directory }: { details: Details; cut: Cut; at: string; metadata: MessageMetadata; directory: string }) {
  switch (details.type) {
    case 'diff':
      return <DiffCard details={details} cut={cut} at={at} directory={directory} />
    case 'fileList':
      return <Files details={details} directory={directory} />
    case 'commandOutput':
      return <Command details={details} cut={cut} at={at} command={text(field(metadata.input, 'command')) ?? ''} />
    default:
      return <Json value={details} />
  }
}

function DiffCard({ details, cut, at, directory }: { details: DiffDetails; cut: Cut; at: string; directory: string }) {
  const [split, setSplit] = useState(false)
  const before = cut.text(`${at}/data/oldContent`, details.data.oldContent)
  const after = cut.text(`${at}/data/newContent`, details.data.newContent)
  const more = cut.more(`${at}/data/oldContent`, `${at}/data/newContent`)
  const path = within(details.data.path ?? '', directory)
  const change = useMemo(() => compare(path || 'file', before, after), [path, before, after])
  return (
    <div>
      <div className="file-head">
        <span className="path mono">{path}</span>
        <Counts added={change.added} removed={change.removed} />
        <button type="button" className="link wide-only" aria-pressed={split} onClick={() => setSplit(!split)}>
          {split ? 'Unified' : 'Side by side'}
        </button>
      </div>
      <Diff change={change} split={split} />
      {more}
    </div>
  )
}

const FOLDED_FILES = 12

function Files({ details, directory }: { details: FileListDetails; directory: string }) {
  const [all, setAll] = useState(false)
  const files = details.data.files
  if (!files.length) return <p className="quiet pad">No file.</p>
  return (
    <>
      <ul className="files mono">
        {(all ? files : files.slice(0, FOLDED_FILES)).map((file) => (
          <li key={file}>{within(file, directory)}</li>
        ))}
      </ul>
      {!all && files.length > FOLDED_FILES && (
        <button type="button" className="more" onClick={() => setAll(true)}>
          Show {plural(files.length - FOLDED_FILES, 'more file')}
        </button>
      )}
    </>
  )
}

function Command({ details, cut, at, command }: { details: CommandOutputDetails; cut: Cut; at: string; command: string }) {
  const stdout = cut.text(`${at}/data/stdout`, details.data.stdout)
  const stderr = cut.text(`${at}/data/stderr`, details.data.stderr)
  return (
    <div className="terminal">
      {command && (
        <RanCommand text={command}>
          <Copy text={command} label="Copy command" />
        </RanCommand>
      )}
      {stdout.trim() && <Output text={stdout} isBeginning={cut.isCut(`${at}/data/stdout`)} />}
      {stderr.trim() && <Output text={stderr} isBeginning={cut.isCut(`${at}/data/stderr`)} isError />}
      {!stdout.trim() && !stderr.trim() && <p className="quiet pad">It printed nothing.</p>}
      {cut.more(`${at}/data/stdout`, `${at}/data/stderr`)}
    </div>
  )
}

/** What was printed: the end of it at first. Where only the beginning is known, that, so that no middle looks like the end. */
export function Output({ text: given, isError = false, isBeginning = false }: { text: string; isError?: boolean; isBeginning?: boolean }) {
  const [all, setAll] = useState(false)
  const lines = useMemo(() => given.replace(/\n+$/, '').split('\n'), [given])
  const hidden = all ? 0 : Math.max(0, lines.length - FOLDED_LINES)
  const part = isBeginning ? lines.slice(0, lines.length - hidden) : lines.slice(hidden)
  const more = hidden > 0 && (
    <button type="button" className="more" onClick={() => setAll(true)}>
      Show {plural(hidden, isBeginning ? 'more line' : 'earlier line')}
    </button>
  )
  return (
    <>
      {!isBeginning && more}
      <pre className={`output${isError ? ' stderr' : ''}`} tabIndex={0}>
        <Ansi text={part.join('\n')} />
      </pre>
      {isBeginning && more}
    </>
  )
}

function Progress({ metadata }: { metadata: MessageMetadata }) {
  const printed = text(field(metadata.progress, 'output'))
  const command = text(field(metadata.input, 'command'))
  return (
    <div className="terminal">
      {command && <RanCommand text={command} />}
      {printed && <Output text={printed} />}
    </div>
  )
}

/** The command of a terminal. */
function RanCommand({ text, children }: { text: string; children?: ReactNode }) {
  return (
    <div className="terminal-command">
      <CommandLine>
        <Coloured text={text} language="bash" />
      </CommandLine>
      {children}
    </div>
  )
}

function Todos({ todos }: { todos: unknown[] }) {
  return (
    <ul className="todos">
      {todos.map((todo, key) => {
        const state = text(field(todo, 'status')) ?? 'pending'
        return (
          <li key={key} className={state}>
            <span className="box" aria-hidden="true">{state === 'completed' && <Icon name="check" />}</span>
            <span>{text(field(todo, 'content')) ?? ''}</span>
            <span className="visually-hidden">({state.replace('_', ' ')})</span>
          </li>
        )
      })}
    </ul>
  )
}

function Answers({ metadata, answers }: { metadata: MessageMetadata; answers: unknown[] }) {
  const questions = field(metadata.input, 'questions')
  return (
    <dl className="answers">
      {answers.map((answer, key) => (
        <div key={key}>
          <dt>{text(field(Array.isArray(questions) ? questions[key] : null, 'question')) ?? `Question ${key + 1}`}</dt>
          <dd>{Array.isArray(answer) ? answer.map(String).join(', ') : String(answer)}</dd>
        </div>
      ))}
    </dl>
  )
}

/** What the model asked for, for those who look closer. */
function Input({ metadata }: { metadata: MessageMetadata }) {
  const [open, setOpen] = useState(false)
  const input = metadata.input
  if (typeof input !== 'object' || input === null || !Object.keys(input).length) return null
  return (
    <div className="raw">
      <button type="button" className="link" aria-expanded={open} onClick={() => setOpen(!open)}>
        {open ? 'Hide arguments' : 'Arguments'}
      </button>
      {open && <Json value={input} />}
    </div>
  )
}

export function Json({ value }: { value: unknown }) {
  const shown = useMemo(() => JSON.stringify(value, null, 2) ?? 'nothing', [value])
  return (
    <pre className="json" tabIndex={0}>
      <Coloured text={shown} language="json" />
    </pre>
  )
}

export { languageOf }
