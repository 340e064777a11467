import { useCallback, useEffect, useState } from 'react'
import type { AuditEntry, AuditVerification } from '../api'
import { moment, plural } from '../lib/format'
import { get, query } from '../lib/http'
import { go } from '../lib/router'
import { message } from '../state/live'
import { Json } from '../ui/cards'
import { Icon } from '../ui/Icon'
import { Empty, Failed, Loading } from '../ui/states'

/** Records of a page. */
const PAGE = 200

/** Who was allowed what, and whether the record of it is whole. */
export function Audit({ session }: { session: string | null }) {
  const [entries, setEntries] = useState<AuditEntry[] | null>(null)
  const [error, setError] = useState<string | null>(null)
  const [decision, setDecision] = useState('')
  const [subject, setSubject] = useState('')
  const [plugin, setPlugin] = useState('')
  const [limit, setLimit] = useState(PAGE)
  const [open, setOpen] = useState<number | null>(null)

  const load = useCallback(() => {
    setError(null)
    get<AuditEntry[]>(`/outrigger/v1/audit${query({ session, decision, subject, plugin, limit })}`).then(setEntries, (problem: unknown) => setError(message(problem)))
  }, [session, decision, subject, plugin, limit])
  useEffect(() => {
    const timer = setTimeout(load, 200)
    return () => clearTimeout(timer)
  }, [load])

  const shown = entries?.toSorted((a, b) => b.seq - a.seq)
  return (
    <div className="page">
      <header className="page-head">
        <h1>Audit</h1>
        {session && (
          <button type="button" onClick={() => go({ view: 'audit', session: null })}>
            One conversation <Icon name="cross" />
          </button>
        )}
      </header>
      <Verification />
      <div className="toolbar">
        <label>
          <span>Decision</span>
          <input type="search" value={decision} placeholder="deny" onChange={(event) => setDecision(event.target.value.trim())} />
        </label>
        <label>
          <span>Subject</span>
          <input type="search" value={subject} onChange={(event) => setSubject(event.target.value)} />
        </label>
        <label>
          <span>Plugin</span>
          <input type="search" value={plugin} onChange={(event) => setPlugin(event.target.value)} />
        </label>
      </div>
      {error && <Failed message={error} retry={load} />}
      {!error && !shown && <Loading label="Loading the records" />}
      {shown?.length === 0 && <Empty icon="shield" title="No record" text="What tools, plugins and processes were allowed is recorded here as it happens." />}
      {shown && shown.length > 0 && (
        <div className="table" tabIndex={0} role="region" aria-label="Records">
          <table className="facts">
            <thead>
              <tr>
                <th scope="col">When</th>
                <th scope="col">What</th>
                <th scope="col">Decision</th>
                <th scope="col">Subject</th>
                <th scope="col">Who</th>
                <th scope="col"><span className="visually-hidden">Details</span></th>
              </tr>
            </thead>
            <tbody>
              {shown.map((entry) => (
                <Row key={entry.seq} entry={entry} isOpen={open === entry.seq} toggle={() => setOpen(open === entry.seq ? null : entry.seq)} />
              ))}
            </tbody>
          </table>
          {shown.length >= limit && (
            <button type="button" className="more" onClick={() => setLimit(limit + PAGE)}>
              Show older records
            </button>
          )}
        </div>
      )}
    </div>
  )
}

function Row({ entry, isOpen, toggle }: { entry: AuditEntry; isOpen: boolean; toggle: () => void }) {
  const refused = /deny|denied|refuse|block|reject/.test(entry.decision)
  return (
    <>
      <tr className={isOpen ? 'chosen' : undefined}>
        <td className="when">{moment(entry.at)}</td>
        <td>
          {entry.kind}
          {entry.hookName && <span className="quiet"> {entry.hookName}</span>}
        </td>
        <td className={refused ? 'bad' : undefined}>{entry.decision}</td>
        <td className="mono">{entry.subject ?? ''}</td>
        <td>{entry.pluginId ?? entry.subPluginId ?? ''}</td>
        <td>
          <button type="button" className="icon-button small" aria-expanded={isOpen} aria-label={`Record ${entry.seq}`} onClick={toggle}>
            <Icon name={isOpen ? 'down' : 'right'} />
          </button>
        </td>
      </tr>
      {isOpen && (
        <tr>
          <td colSpan={6}>
            <Json value={entry} />
          </td>
        </tr>
      )}
    </>
  )
}

function Verification() {
  const [state, setState] = useState<AuditVerification | 'running' | null>(null)
  const [error, setError] = useState<string | null>(null)
  const verify = () => {
    setState('running')
    setError(null)
    get<AuditVerification>('/outrigger/v1/audit/verify').then(setState, (problem: unknown) => {
      setState(null)
      setError(message(problem))
    })
  }
  return (
    <section className="panel" aria-label="Verification">
      <div className="panel-head">
        <h2>Verification</h2>
        {state && state !== 'running' && (
          <span className={`badge ${state.valid ? 'ok' : 'failed'}`}>{state.valid ? 'whole' : 'not whole'}</span>
        )}
        <span className="grow" />
        <button type="button" disabled={state === 'running'} onClick={verify}>
          {state === 'running' ? 'Reading all of it …' : 'Verify'}
        </button>
      </div>
      {error && <p className="bad" role="alert">{error}</p>}
      {!state && !error && <p className="quiet">Each record has the hash of the one before it, and seals are signed. Verifying reads all of them.</p>}
      {state && state !== 'running' && (
        <>
          <p className="quiet">
            {plural(state.rows, 'record')}, {plural(state.seals, 'seal')}, {state.unsealed} since the last seal{state.removed > 0 && `, ${state.removed} removed by retention`}.
          </p>
          {state.faults.map((fault) => (
            <p key={fault} className="bad">
              {fault}
            </p>
          ))}
        </>
      )}
    </section>
  )
}
