import { useState } from 'react'
import { tell } from '../messages'

/** The native program in this browser, where the user has switched that on here and there. */
export function Relay({ url, change }: { url: string; change: (url: string) => void }) {
  const [entry, setEntry] = useState(url)
  const [token, setToken] = useState('')
  const [said, setSaid] = useState('')
  const set = async (relay: string) => {
    await tell('save', { settings: { relay }, ...(token ? { relayToken: token } : {}) })
    change(relay)
    setToken('')
    if (!relay) return setSaid('Switched off. Its tabs are closed.')
    const { connected, tabs } = await tell('relay', {})
    setSaid(connected ? `Connected; it has ${tabs} tabs.` : 'Switched on. It connects when the agent uses the browser.')
  }
  const report = (problem: unknown) => setSaid(problem instanceof Error ? problem.message : String(problem))
  return (
    <section aria-label="Native program">
      <h2>Native program</h2>
      <p>
        The agent of the native program opens tabs in this browser, with your logins, and works in these alone. In outrigger.toml, set{' '}
        <code>[browser] extension = &quot;{location.origin}&quot;</code>
      </p>
      <label>
        Address, as ws://127.0.0.1:39223
        <input value={entry} onChange={(event) => setEntry(event.target.value)} />
      </label>
      <label>
        Token (kept until the browser closes)
        <input type="password" value={token} onChange={(event) => setToken(event.target.value)} />
      </label>
      <button type="button" onClick={() => void set(entry.trim()).catch(report)}>Switch on</button>
      {url && <button type="button" onClick={() => void set('').catch(report)}>Switch off</button>}
      {said && <p role="status">{said}</p>}
    </section>
  )
}
