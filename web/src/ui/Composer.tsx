import { useEffect, useId, useMemo, useRef, useState } from 'react'
import type { Conversation } from '../api'
import { folder, plural } from '../lib/format'
import { post } from '../lib/http'
import { useCatalog } from '../state/catalog'
import { comments, withComments } from '../state/comments'
import { message } from '../state/live'
import { useSignal } from '../state/signal'
import { Icon } from './Icon'

const drafts = new Map<string, string>()

/** Where a prompt is written. */
export function Composer({ info, isOffline }: { info: Conversation; isOffline: boolean }) {
  const { id, directory } = info
  const [text, setText] = useState(() => drafts.get(id) ?? '')
  const [error, setError] = useState<string | null>(null)
  const [busy, setBusy] = useState(false)
  const [agent, setAgent] = useState<string | null>(null)
  const [model, setModel] = useState<string | null>(null)
  const catalog = useCatalog(directory)
  const input = useRef<HTMLTextAreaElement>(null)
  const listId = useId()
  useSignal(comments.signal)
  const noted = comments.of(id)
  const works = info.status !== 'idle'

  useEffect(() => {
    setText(drafts.get(id) ?? '')
    setError(null)
    setAgent(null)
    setModel(null)
  }, [id])

  useEffect(() => {
    const area = input.current
    if (!area) return
    area.style.height = 'auto'
    area.style.height = `${Math.min(area.scrollHeight, 280)}px`
  }, [text])

  const write = (next: string) => {
    drafts.set(id, next)
    setText(next)
  }

  const typed = /^\/(\S*)$/.exec(text)?.[1]
  const commands = useMemo(
    () => (typed === undefined ? [] : (catalog?.commands ?? []).filter((it) => it.name.startsWith(typed)).slice(0, 8)),
    [typed, catalog],
  )

  const chosenModel = model ?? (info.model ? `${info.model.providerID}/${info.model.id}` : (catalog?.model ?? ''))
  const chosenAgent = agent ?? info.agent ?? catalog?.agents[0]?.name ?? ''

  const send = async () => {
    const said = text.trim()
    if ((!said && !noted.length) || busy) return
    setBusy(true)
    setError(null)
    const call = /^\/(\S+)\s*([\s\S]*)$/.exec(said)
    const command = call && catalog?.commands.find((it) => it.name === call[1])
    const slash = chosenModel.indexOf('/')
    try {
      if (command && call) {
        write('')
        await post(`/session/${id}/command`, { command: command.name, arguments: call[2] ?? '', ...(agent ? { agent } : {}), ...(model ? { model } : {}) }, { directory })
      } else {
        const body = {
          parts: [{ type: 'text', text: withComments(said, noted) }],
          ...(agent ? { agent } : {}),
          ...(model && slash > 0 ? { model: { providerID: model.slice(0, model.indexOf('/')), modelID: model.slice(model.indexOf('/') + 1) } } : {}),
        }
        await post(`/session/${id}/prompt_async`, body, { directory })
        comments.clear(id)
        write('')
      }
    } catch (problem) {
      if (command) write(said)
      setError(message(problem))
    }
    setBusy(false)
    input.current?.focus()
  }

  const stop = () => void post(`/session/${id}/abort`, {}, { directory }).catch((problem: unknown) => setError(message(problem)))

  return (
    <form
      className="composer"
      onSubmit={(event) => {
        event.preventDefault()
        void send()
      }}
    >
      {error && (
        <p className="bad" role="alert">
          {error}
        </p>
      )}
      {noted.length > 0 && (
        <ul className="noted" aria-label={`${plural(noted.length, 'comment')} for the next prompt`}>
          {noted.map((one) => (
            <li key={one.id}>
              <Icon name="comment" />
              <span className="mono">
                {folder(one.path)}:{Math.abs(one.line)}
              </span>
              <span className="noted-text">{one.text}</span>
              <button type="button" className="icon-button small" aria-label="Remove comment" onClick={() => comments.remove(one.id)}>
                <Icon name="cross" />
              </button>
            </li>
          ))}
        </ul>
      )}
      {commands.length > 0 && (
        <ul className="commands" id={listId} aria-label="Commands">
          {commands.map((command) => (
            <li key={command.name}>
              <button
                type="button"
                onClick={() => {
                  write(`/${command.name} `)
                  input.current?.focus()
                }}
              >
                <strong className="mono">/{command.name}</strong> <span>{command.description}</span>
              </button>
            </li>
          ))}
        </ul>
      )}
      <textarea
        ref={input}
        id="prompt"
        rows={1}
        value={text}
        aria-label="Prompt"
        placeholder={works ? 'Add to what it is doing' : 'What is to be done?'}
        onChange={(event) => write(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === 'Enter' && !event.shiftKey && !event.nativeEvent.isComposing) {
            event.preventDefault()
            void send()
          } else if (event.key === 'Escape' && works) {
            event.preventDefault()
            stop()
          }
        }}
      />
      <div className="composer-foot">
        <label>
          <span className="visually-hidden">Agent</span>
          <select value={chosenAgent} onChange={(event) => setAgent(event.target.value)}>
            {!catalog?.agents.some((it) => it.name === chosenAgent) && <option value={chosenAgent}>{chosenAgent || 'agent'}</option>}
            {catalog?.agents.map((it) => (
              <option key={it.name} value={it.name}>
                {it.name}
              </option>
            ))}
          </select>
        </label>
        <label>
          <span className="visually-hidden">Model</span>
          <select value={chosenModel} onChange={(event) => setModel(event.target.value)}>
            {!catalog?.models.some((it) => `${it.provider}/${it.id}` === chosenModel) && <option value={chosenModel}>{chosenModel || 'model'}</option>}
            {catalog?.models.map((it) => (
              <option key={`${it.provider}/${it.id}`} value={`${it.provider}/${it.id}`}>
                {it.name}
              </option>
            ))}
          </select>
        </label>
        <span className="grow" />
        {works && (
          <button type="button" className="stop" onClick={stop}>
            <Icon name="stop" /> Stop
          </button>
        )}
        <button type="submit" className="primary send" aria-label="Send" disabled={busy || isOffline || (!text.trim() && !noted.length)}>
          <Icon name="send" />
        </button>
      </div>
    </form>
  )
}
