import { useEffect, useMemo, useState } from 'react'
import type { Conversation, PromptDiff } from '../api'
import { plural, within } from '../lib/format'
import { get } from '../lib/http'
import { comments } from '../state/comments'
import { live, message } from '../state/live'
import { useSignal } from '../state/signal'
import { Counts, Diff } from '../ui/Diff'
import { type FileChange, compare, fromText } from '../ui/diff'
import { Icon } from '../ui/Icon'
import { Empty, Failed, Loading } from '../ui/states'

interface Raw {
  file: string
  patch?: string
  before?: string
  after?: string
  additions?: number
  deletions?: number
}

/** Files that the prompts of a conversation changed, with comments for the next one. */
export function Changes({ info }: { info: Conversation }) {
  const [found, setFound] = useState<PromptDiff[] | null>(null)
  const [error, setError] = useState<string | null>(null)
  const [split, setSplit] = useState(false)
  const [prompt, setPrompt] = useState('all')
  useSignal(comments.signal)

  const load = () => {
    setError(null)
    get<PromptDiff[]>(`/outrigger/v1/conversation/${info.id}/diff`).then(setFound, (problem: unknown) => setError(message(problem)))
  }
  // A finished turn may have changed something.
  useEffect(load, [info.id, info.status, info.time.updated])

  const open = live.open(info.id)
  useSignal(open.rows)
  useEffect(() => void open.begin(), [open])
  const texts = useTexts(info.id, found, open.model.version)
  if (error && !found) return <Failed message={error} retry={load} />
  if (!found) return <Loading label="Loading the changes" />
  if (!found.length) return <Empty icon="edit" title="No file was changed" text="What the agent changes in your files is shown here, prompt by prompt. Comments that you leave on a line go with your next prompt." />
  const shown = prompt === 'all' ? found : found.filter((one) => one.attempt === prompt)
  return (
    <div className="page changes">
      <div className="toolbar">
        <label>
          <span>Prompt</span>
          <select value={prompt} onChange={(event) => setPrompt(event.target.value)}>
            <option value="all">all prompts</option>
            {found.map((one) => (
              <option key={one.attempt} value={one.attempt}>
                {(texts.get(one.attempt) ?? one.attempt).slice(0, 60)}
              </option>
            ))}
          </select>
        </label>
        <button type="button" className="wide-only" aria-pressed={split} onClick={() => setSplit(!split)}>
          {split ? 'Unified' : 'Side by side'}
        </button>
      </div>
      {shown.toReversed().map((one) => (
        <section key={one.attempt} aria-label={texts.get(one.attempt) ?? 'A prompt'}>
          <h2>{texts.get(one.attempt) ?? 'A prompt'}</h2>
          {(one.diffs as Raw[]).map((raw) => (
            <File key={raw.file} raw={raw} info={info} split={split} />
          ))}
        </section>
      ))}
    </div>
  )
}

/** What the prompts said, where they are known. */
function useTexts(id: string, found: PromptDiff[] | null, version: number): Map<string, string> {
  return useMemo(() => {
    const texts = new Map<string, string>()
    if (!found) return texts
    for (const entry of live.open(id).model.entries()) {
      if (entry.message.role === 'user' && entry.message.messageType === 'text' && !texts.has(entry.attempt)) texts.set(entry.attempt, entry.message.content.split('\n')[0] ?? '')
    }
    return texts
    // A new version means that more data has arrived.
  }, [id, found, version])
}

function changeOf(raw: Raw): FileChange {
  if (raw.patch) return fromText(raw.file, raw.patch)
  return compare(raw.file, raw.before ?? '', raw.after ?? '')
}

function File({ raw, info, split }: { raw: Raw; info: Conversation; split: boolean }) {
  const change = useMemo(() => changeOf(raw), [raw])
  const [open, setOpen] = useState(true)
  const path = within(raw.file, info.directory)
  const code = (at: number) => change.hunks.flatMap((hunk) => hunk.lines).find((line) => (at < 0 ? line.kind === 'old' && line.old === -at : line.new === at))?.text ?? ''
  const noted = comments.of(info.id).filter((one) => one.path === path)
  const side = {
    of: (at: number) =>
      noted
        .filter((one) => one.line === at)
        .map((one) => (
          <tr className="comment-row" key={one.id}>
            <td colSpan={4}>
              <div className="comment">
                <Icon name="comment" />
                <p>{one.text}</p>
                <button type="button" className="icon-button small" aria-label="Remove comment" onClick={() => comments.remove(one.id)}>
                  <Icon name="cross" />
                </button>
              </div>
            </td>
          </tr>
        )),
    write: (line: number, text: string) => comments.add({ conversation: info.id, path, line, code: code(line), text }),
  }
  return (
    <article className="card changed-file">
      <button type="button" className="card-head" aria-expanded={open} onClick={() => setOpen(!open)}>
        <span className="chevron">
          <Icon name={open ? 'down' : 'right'} />
        </span>
        <span className="path mono">{path}</span>
        {noted.length > 0 && <span className="tag">{plural(noted.length, 'comment')}</span>}
        <Counts added={raw.additions ?? change.added} removed={raw.deletions ?? change.removed} />
      </button>
      {open && (
        <div className="card-body">
          <Diff change={change} split={split} comments={side} />
        </div>
      )}
    </article>
  )
}
