import { useEffect, useState } from 'react'
import type { Grant } from '../kernel/operations'
import { tell } from '../messages'

/** The files of the workspace, and which tabs agents have. */
export function Files() {
  const [folder, setFolder] = useState('')
  const [names, setNames] = useState<string[]>([])
  const [shown, setShown] = useState<{ path: string; text: string } | null>(null)
  const [leases, setLeases] = useState<Grant[]>([])
  const [persons, setPersons] = useState<string[]>([])
  useEffect(() => {
    void tell('files', { folder }).then((found) => setNames(found ?? []))
    void tell('leases', {}).then(setLeases)
    void tell('persons', {}).then(setPersons)
  }, [folder])
  const open = (name: string) => {
    const path = folder + name
    if (name.endsWith('/')) setFolder(path)
    else void tell('file', { path }).then((text) => setShown({ path, text: text ?? '' }))
  }
  return (
    <main className="files">
      <h2>/{folder}</h2>
      {folder && <button type="button" onClick={() => setFolder(folder.replace(/[^/]+\/$/, ''))}>Up</button>}
      <ul>
        {names.map((name) => (
          <li key={name}>
            <button type="button" className="link" onClick={() => open(name)}>{name}</button>
          </li>
        ))}
      </ul>
      {names.length === 0 && <p>There is nothing in this folder.</p>}
      {shown && <section aria-label={shown.path}><h3>{shown.path}</h3><pre>{shown.text}</pre></section>}
      <h2>Tabs in use</h2>
      <ul>{leases.map(({ tab, owner }) => <li key={tab}>{tab}: {owner.agent} of {owner.session}</li>)}</ul>
      {persons.map((tab) => <p key={tab}>{tab} is yours: you have clicked or typed in it.</p>)}
      {leases.length === 0 && <p>No agent has a tab.</p>}
    </main>
  )
}
