import { useEffect, useId, useMemo, useRef, useState } from 'react'
import type { Conversation } from '../api'
import { folder, plural } from '../lib/format'
import { get, post, query } from '../lib/http'
import { type Picture, mention, mentioned, pictures } from '../state/attachments'
import { useCatalog } from '../state/catalog'
import { comments, withComments } from '../state/comments'
import { drafts } from '../state/drafts'
import { live, message } from '../state/live'
import { useSignal } from '../state/signal'
import { Icon } from './Icon'

/** Files of which one is chosen. */
const MAX_FILES = 8

/** Files of the folder for the word after an `@`, best first. */
function useFiles(directory: string, word: string | null): string[] {
  const [found, setFound] = useState<string[]>([])
  useEffect(() => {
    if (word === null) return setFound([])
    const stopped = new AbortController()
    const timer = setTimeout(() => {
      get<string[]>(`/find/file${query({ query: word, limit: MAX_FILES })}`, { directory, signal: stopped.signal }).then(setFound, () => undefined)
    }, 80)
    return () => {
      clearTimeout(timer)
      stopped.abort()
    }
  }, [directory, word])
  return found
}

/** Where a prompt is written. */
export function Composer({ info, isOffline }: { info: Conversation; isOffline: boolean }) {
  const { id, directory } = info
  useSignal(drafts.signal)
  const text = drafts.of(id)
  const [caret, setCaret] = useState(0)
  const [chosen, setChosen] = useState<string[]>([])
  const [attached, setAttached] = useState<Picture[]>([])
  const [at, setAt] = useState(0)
  const [error, setError] = useState<string | null>(null)
  const [busy, setBusy] = useState(false)
  const [agent, setAgent] = useState<string | null>(null)
  const [model, setModel] = useState<string | null>(null)
  const catalog = useCatalog(directory)
  const input = useRef<HTMLTextAreaElement>(null)
  const listId = useId()
  const filesId = useId()
  useSignal(comments.signal)
  const noted = comments.of(id)
  const works = info.status !== 'idle'

  useEffect(() => {
    setError(null)
    setChosen([])
    setAttached([])
    setAgent(null)
    setModel(null)
  }, [id])

  useEffect(() => {
    const area = input.current
    if (!area) return
    area.style.height = 'auto'
    area.style.height = `${Math.min(area.scrollHeight, 280)}px`
  }, [text])

  const write = (next: string) => drafts.write(id, next)
  const naming = mention(text, caret)
  const files = useFiles(directory, naming?.word ?? null)
  useEffect(() => setAt(0), [files])

  const name = (path: string) => {
    if (!naming) return
    const end = naming.from + path.length + 1
    write(`${text.slice(0, naming.from)}${path} ${text.slice(caret)}`)
    setChosen((all) => [...all, path])
    setCaret(end)
    requestAnimationFrame(() => {
      input.current?.focus()
      input.current?.setSelectionRange(end, end)
    })
  }

  const attach = async (given: Iterable<File>) => {
    const { taken, refused } = await pictures(given)
    setAttached((all) => [...all, ...taken])
    setError(refused.length ? `Not attached: ${refused.join('; ')}.` : null)
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
    if ((!said && !noted.length && !attached.length) || busy) return
    setBusy(true)
    setError(null)
    live.open(id).sent.changed()
    const call = /^\/(\S+)\s*([\s\S]*)$/.exec(said)
    const command = call && catalog?.commands.find((it) => it.name === call[1])
    const slash = chosenModel.indexOf('/')
    try {
      if (command && call) {
        write('')
        await post(`/session/${id}/command`, { command: command.name, arguments: call[2] ?? '', ...(agent ? { agent } : {}), ...(model ? { model } : {}) }, { directory })
      } else {
        const body = {
          parts: [
            { type: 'text', text: withComments(said, noted) },
            ...mentioned(said, chosen, directory),
            ...attached.map((one) => ({ type: 'file', mime: one.mime, filename: one.name, url: one.url })),
          ],
          ...(agent ? { agent } : {}),
          ...(model && slash > 0 ? { model: { providerID: model.slice(0, model.indexOf('/')), modelID: model.slice(model.indexOf('/') + 1) } } : {}),
        }
        await post(`/session/${id}/prompt_async`, body, { directory })
        comments.clear(id)
        write('')
        setChosen([])
        setAttached([])
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
      onDragOver={(event) => event.dataTransfer.types.includes('Files') && event.preventDefault()}
      onDrop={(event) => {
        if (!event.dataTransfer.files.length) return
        event.preventDefault()
        void attach([...event.dataTransfer.files])
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
      {naming && files.length > 0 && (
        <ul className="commands" id={filesId} role="listbox" aria-label="Files">
          {files.map((path, n) => (
            <li key={path} role="option" aria-selected={n === at} className={n === at ? 'chosen' : undefined} onMouseDown={(event) => event.preventDefault()} onClick={() => name(path)}>
              <Icon name="file" /> <span className="mono">{path}</span>
            </li>
          ))}
        </ul>
      )}
      {attached.length > 0 && (
        <ul className="attached" aria-label={`${plural(attached.length, 'image')} for the next prompt`}>
          {attached.map((one, n) => (
            <li key={n}>
              <img src={one.url} alt={one.name} />
              <button type="button" className="icon-button small" aria-label={`Remove ${one.name}`} onClick={() => setAttached((all) => all.filter((_, other) => other !== n))}>
                <Icon name="cross" />
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
        aria-controls={naming && files.length ? filesId : undefined}
        onChange={(event) => {
          setCaret(event.target.selectionStart)
          write(event.target.value)
        }}
        onSelect={(event) => setCaret(event.currentTarget.selectionStart)}
        onPaste={(event) => {
          const given = [...event.clipboardData.files]
          if (!given.length) return
          event.preventDefault()
          void attach(given)
        }}
        onKeyDown={(event) => {
          const picked = naming && files.length > 0 && !event.nativeEvent.isComposing
          if (picked && (event.key === 'ArrowDown' || event.key === 'ArrowUp')) {
            event.preventDefault()
            setAt((at + (event.key === 'ArrowDown' ? 1 : files.length - 1)) % files.length)
            return
          }
          if (picked && (event.key === 'Enter' || event.key === 'Tab') && !event.shiftKey) {
            event.preventDefault()
            name(files[at] ?? files[0] ?? '')
            return
          }
          if (picked && event.key === 'Escape') {
            event.preventDefault()
            setCaret(0)
            return
          }
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
        <button type="submit" className="primary send" aria-label="Send" disabled={busy || isOffline || (!text.trim() && !noted.length && !attached.length)}>
          <Icon name="send" />
        </button>
      </div>
    </form>
  )
}
