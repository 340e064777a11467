import { useState } from 'react'
import { tell } from '../messages'

/** `outrigger bridge`: the folder of this machine that files and commands go to, where the user has connected one. */
export function Bridge({ url, change }: { url: string; change: (url: string) => void }) {
  const [entry, setEntry] = useState(url)
  const [token, setToken] = useState('')
  const [said, setSaid] = useState('')
  const connect = async (bridge: string) => {
    await tell('save', { settings: { bridge }, ...(token ? { token } : {}) })
    change(bridge)
    setToken('')
    setSaid(bridge ? `Connected: files and commands are those of ${await tell('bridge', {})}.` : 'Disconnected: files are those of the workspace.')
  }
  const report = (problem: unknown) => setSaid(problem instanceof Error ? problem.message : String(problem))
  return (
    <section aria-label="Bridge">
      <h2>Bridge</h2>
      <p>
        Files and commands of this machine, in place of the workspace. In a folder, start <code>outrigger bridge --origin {location.origin}</code>
      </p>
      <label>
        Address, as ws://127.0.0.1:7070
        <input value={entry} onChange={(event) => setEntry(event.target.value)} />
      </label>
      <label>
        Token (kept until the browser closes)
        <input type="password" value={token} onChange={(event) => setToken(event.target.value)} />
      </label>
      <button type="button" onClick={() => void connect(entry.trim()).catch(report)}>Connect</button>
      {url && <button type="button" onClick={() => void connect('').catch(report)}>Disconnect</button>}
      {said && <p role="status">{said}</p>}
    </section>
  )
}
