import { useEffect, useState } from 'react'
import { get, post } from '../lib/http'
import { go } from '../lib/router'
import { useCatalog } from '../state/catalog'
import { live, message } from '../state/live'
import { useSignal } from '../state/signal'

/** Begins a conversation in a folder. */
export function New() {
  useSignal(live.list)
  const [own, setOwn] = useState<string | null>(null)
  const known = live.directories()
  const [directory, setDirectory] = useState(known[0] ?? '')
  const [text, setText] = useState('')
  const [agent, setAgent] = useState('')
  const [model, setModel] = useState('')
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState<string | null>(null)
  const catalog = useCatalog(directory || own || undefined)

  useEffect(() => {
    get<{ directory: string }>('/path')
      .then((path) => {
        setOwn(path.directory)
        setDirectory((now) => now || path.directory)
      })
      .catch((problem: unknown) => setError(message(problem)))
  }, [])

  const usual = catalog?.models.find((it) => `${it.provider}/${it.id}` === catalog.model)
  const folders = [...new Set([...(own ? [own] : []), ...known])]
  const begin = async () => {
    if (!text.trim() || busy) return
    setBusy(true)
    setError(null)
    try {
      const session = await post<{ id: string }>('/session', {}, { directory })
      const slash = model.indexOf('/')
      const chosen = slash > 0 ? { model: { providerID: model.slice(0, slash), modelID: model.slice(slash + 1) } } : {}
      await post(`/session/${session.id}/prompt_async`, { parts: [{ type: 'text', text: text.trim() }], ...(agent ? { agent } : {}), ...chosen }, { directory })
      go({ view: 'conversation', id: session.id, tab: 'talk' })
    } catch (problem) {
      setError(message(problem))
      setBusy(false)
    }
  }
  return (
    <div className="page narrow">
      <header className="page-head">
        <h1>New conversation</h1>
      </header>
      <form
        className="form"
        onSubmit={(event) => {
          event.preventDefault()
          void begin()
        }}
      >
        <label>
          <span>What is to be done?</span>
          <textarea
            autoFocus
            rows={6}
            value={text}
            onChange={(event) => setText(event.target.value)}
            onKeyDown={(event) => {
              if (event.key === 'Enter' && (event.metaKey || event.ctrlKey)) void begin()
            }}
          />
        </label>
        <label>
          <span>Folder</span>
          <input list="folders" value={directory} spellCheck={false} autoComplete="off" className="mono" onChange={(event) => setDirectory(event.target.value)} />
          <datalist id="folders">
            {folders.map((folder) => (
              <option key={folder} value={folder} />
            ))}
          </datalist>
        </label>
        <div className="form-row">
          <label>
            <span>Model</span>
            <select value={model} onChange={(event) => setModel(event.target.value)}>
              <option value="">{usual ? `default (${usual.name})` : 'default'}</option>
              {catalog?.models.map((it) => (
                <option key={`${it.provider}/${it.id}`} value={`${it.provider}/${it.id}`}>
                  {it.name}
                </option>
              ))}
            </select>
          </label>
          <label>
            <span>Agent</span>
            <select value={agent} onChange={(event) => setAgent(event.target.value)}>
              <option value="">default</option>
              {catalog?.agents.map((it) => (
                <option key={it.name} value={it.name}>
                  {it.name}
                </option>
              ))}
            </select>
          </label>
        </div>
        {catalog && !catalog.models.length && (
          <p className="warn" role="status">
            No model can be used in this folder. Run <code>outrigger auth login</code> in a terminal, then reload this page.
          </p>
        )}
        {error && (
          <p className="bad" role="alert">
            {error}
          </p>
        )}
        <div className="buttons">
          <button type="submit" className="primary" disabled={busy || !text.trim() || !directory}>
            {busy ? 'Beginning …' : 'Begin'}
          </button>
          <span className="quiet">
            <kbd>Ctrl</kbd> <kbd>Enter</kbd>
          </span>
        </div>
      </form>
    </div>
  )
}
