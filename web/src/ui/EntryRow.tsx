import { memo, useState } from 'react'
import type { Entry } from '../api'
import { clock, plural, within } from '../lib/format'
import { post } from '../lib/http'
import { go } from '../lib/router'
import { messageOf } from '../state/conversation'
import { drafts } from '../state/drafts'
import { message, type Open } from '../state/live'
import { useNamed } from '../state/signal'
import { Copy } from './Copy'
import { Icon } from './Icon'
import { Markdown } from './Markdown'
import { ToolCard } from './cards'
import { RefusedUndo, useUndo } from './undo'

const PICTURES = /^data:image\/(png|jpeg|gif|webp);base64,/

/** One row of a conversation. It is drawn anew when its entry changes, and no other is. */
export const EntryRow = memo(function EntryRow({ open, id, directory, isFound = false }: { open: Open; id: string; directory: string; isFound?: boolean }) {
  useNamed(open.keys, id)
  const entry = open.model.entry(id)
  if (!entry) return <div className="row placeholder" aria-busy="true" />
  return (
    <div className={`row ${entry.message.role} ${entry.message.messageType}${isFound ? ' found' : ''}`} data-key={id}>
      <Content entry={entry} draft={open.model.draft(id)} directory={directory} />
    </div>
  )
})

function Content({ entry, draft, directory }: { entry: Entry; draft: string | undefined; directory: string }) {
  const { message, state } = entry
  switch (message.messageType) {
    case 'text':
      return message.role === 'user' ? <Prompt entry={entry} directory={directory} /> : <Answer text={draft ?? message.content} isWriting={state === 'running'} />
    case 'reasoning':
      return <Reasoning text={draft ?? message.content} isWriting={state === 'running'} />
    case 'tool_use':
    case 'tool_execution':
    case 'tool_result':
      return <ToolCard entry={entry} directory={directory} />
    case 'file':
      return <File entry={entry} />
    case 'patch':
      return <Patch entry={entry} directory={directory} />
    case 'error':
      return (
        <div className="notice bad" role="alert">
          <Icon name="warn" />
          <div>
            <strong>{String((message.metadata as Record<string, unknown>)['name'] ?? 'Error')}</strong>
            <p>{message.content}</p>
          </div>
        </div>
      )
    case 'retry':
      return (
        <div className="notice warn">
          <Icon name="warn" />
          <p>Tried again: {message.content}</p>
        </div>
      )
    case 'compaction':
      return <div className="divider">{message.content}</div>
    case 'agent':
      return <span className="chip">@{message.content}</span>
    case 'subtask':
      return (
        <span className="chip">
          <Icon name="agent" /> {message.content}
        </span>
      )
    default:
      // Unknown content is shown verbatim.
      return message.content ? <p className="unknown">{message.content}</p> : <span className="chip">{message.messageType}</span>
  }
}

const FOLDED_PROMPT = 1200

function Prompt({ entry, directory }: { entry: Entry; directory: string }) {
  const text = entry.message.content
  const [all, setAll] = useState(false)
  const isLong = text.length > FOLDED_PROMPT
  return (
    <div className="prompt">
      <p>{isLong && !all ? `${text.slice(0, FOLDED_PROMPT)} …` : text}</p>
      {isLong && !all && (
        <button type="button" className="link" onClick={() => setAll(true)}>
          Show the whole prompt
        </button>
      )}
      <PromptTools entry={entry} directory={directory} />
      <time dateTime={new Date(entry.message.timestamp).toISOString()}>{clock(entry.message.timestamp)}</time>
    </div>
  )
}

/** From a prompt on, another way: in a copy that ends before it, or here. */
function PromptTools({ entry, directory }: { entry: Entry; directory: string }) {
  const [error, setError] = useState<string | null>(null)
  const id = entry.conversation
  const messageID = messageOf(entry.key)
  const failed = (problem: unknown) => setError(message(problem))
  const fork = () =>
    void post<{ id: string }>(`/session/${id}/fork`, { messageID }, { directory }).then((copy) => {
      drafts.write(copy.id, entry.message.content)
      go({ view: 'conversation', id: copy.id, tab: 'talk' })
    }, failed)
  const undo = useUndo(`/session/${id}/revert`, directory, () => drafts.write(id, entry.message.content))
  return (
    <span className="prompt-tools">
      {error && (
        <span className="bad" role="alert">
          {error}
        </span>
      )}
      {undo.refusal && <RefusedUndo refusal={undo.refusal} label="Take back anyway" onForce={() => undo.send({ messageID, force: true })} onDismiss={undo.dismiss} />}
      <button type="button" className="icon-button small" aria-label="Fork: go on from before this prompt in a copy" title="Fork: go on from before this prompt in a copy" onClick={fork}>
        <Icon name="fork" />
      </button>
      <button type="button" className="icon-button small" aria-label="Take back this prompt, all that came after, and its changes of files" title="Take back this prompt, all that came after, and its changes of files" onClick={() => undo.send({ messageID })}>
        <Icon name="undo" />
      </button>
    </span>
  )
}

function Answer({ text, isWriting }: { text: string; isWriting: boolean }) {
  if (!text && isWriting) return <Writing />
  return (
    <div className={`answer${isWriting ? ' writing' : ''}`} aria-busy={isWriting}>
      <Markdown text={text} />
      {!isWriting && (
        <div className="answer-tools">
          <Copy text={text} label="Copy answer" />
        </div>
      )}
    </div>
  )
}

export function Writing() {
  return (
    <span className="dots" role="status" aria-label="The model is working">
      <i />
      <i />
      <i />
    </span>
  )
}

function Reasoning({ text, isWriting }: { text: string; isWriting: boolean }) {
  const [open, setOpen] = useState(false)
  const first = text.trim().split('\n')[0]?.replace(/\*\*/g, '') ?? ''
  return (
    <div className="reasoning">
      <button type="button" aria-expanded={open} onClick={() => setOpen(!open)}>
        <Icon name={isWriting ? 'think' : open ? 'down' : 'right'} />
        <span>{isWriting ? 'Thinking' : 'Thought'}</span>
        {!open && <span className="first">{first}</span>}
      </button>
      {open && <Markdown text={text} />}
    </div>
  )
}

function File({ entry }: { entry: Entry }) {
  const fields = entry.message.metadata as Record<string, unknown>
  const url = typeof fields['url'] === 'string' ? fields['url'] : ''
  const name = entry.message.content || String(fields['mime'] ?? 'file')
  if (PICTURES.test(url)) return <img className="picture" src={url} alt={name} />
  return (
    <span className="chip">
      <Icon name="file" /> {name}
    </span>
  )
}

function Patch({ entry, directory }: { entry: Entry; directory: string }) {
  const details = entry.message.metadata.details
  const files = details?.type === 'fileList' ? details.data.files : []
  const names = files.slice(0, 3).map((file) => within(file, directory))
  return (
    <p className="patch">
      <Icon name="check" /> {plural(files.length, 'file')} changed in this step: <span className="mono">{names.join(', ')}</span>
      {files.length > 3 && ` and ${files.length - 3} more`}
    </p>
  )
}
