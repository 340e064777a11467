import { useEffect, useState } from 'react'
import type { Conversation, Span, Trace as TraceOf, Turn } from '../api'
import { clock, duration, plural } from '../lib/format'
import { get } from '../lib/http'
import { message } from '../state/live'
import { Changed } from '../ui/Changed'
import { Json } from '../ui/cards'
import { Empty, Failed, Loading } from '../ui/states'

/** What happened in a turn: hooks, model and tools, one below the other. */
export function Trace({ info }: { info: Conversation }) {
  const [turns, setTurns] = useState<Turn[] | null>(null)
  const [chosen, setChosen] = useState<string | null>(null)
  const [trace, setTrace] = useState<TraceOf | null>(null)
  const [error, setError] = useState<string | null>(null)
  const base = `/outrigger/v1/conversation/${info.id}/turn`
  const load = () => {
    setError(null)
    get<Turn[]>(base).then(setTurns, (problem: unknown) => setError(message(problem)))
  }
  useEffect(load, [base, info.status])
  const turn = chosen ?? turns?.[0]?.id ?? null
  useEffect(() => {
    if (!turn) return
    let current = true
    get<TraceOf>(`${base}/${turn}`).then(
      (found) => current && setTrace(found),
      (problem: unknown) => current && setError(message(problem)),
    )
    return () => {
      current = false
    }
  }, [base, turn, info.status])

  if (error) return <Failed message={error} retry={load} />
  if (!turns) return <Loading label="Loading the turns" />
  if (!turns.length) return <Empty icon="list" title="No turn yet" text="Each prompt is a turn. What hooks, model and tools did in it is shown here, with the time that each took." />
  return (
    <div className="page">
      <div className="toolbar">
        <label>
          <span>Turn</span>
          <select value={turn ?? ''} onChange={(event) => setChosen(event.target.value)}>
            {turns.map((one, n) => (
              <option key={one.id} value={one.id}>
                {turns.length - n} · {clock(one.began)} · {one.open ? 'runs' : duration(one.ended - one.began)}
              </option>
            ))}
          </select>
        </label>
        <div className="legend" aria-hidden="true">
          {(['hook', 'model', 'tool'] as const).map((kind) => (
            <span key={kind}>
              <i className={`kind kind-${kind}`} /> {kind}
            </span>
          ))}
        </div>
      </div>
      {trace ? <Waterfall trace={trace} /> : <Loading label="Loading the trace" />}
    </div>
  )
}

/** Hooks by the names that users of plugins know, as `outrigger plugin trace` has them. */
export function nameOf(span: Span): string {
  const hook = span.kind === 'hook' ? span.facts.hook : undefined
  return typeof hook === 'string' && hook ? hook : span.name
}

/** How long a call waited for a person, in milliseconds. */
export function waited(span: Span): number {
  const ms = span.facts.waitedMs
  return typeof ms === 'number' ? Math.min(ms, span.durationMs) : 0
}

function Waterfall({ trace }: { trace: TraceOf }) {
  const { turn, spans } = trace
  const [open, setOpen] = useState<number | null>(null)
  if (!spans.length) return <p className="quiet">Nothing was recorded in this turn.</p>
  const end = Math.max(turn.ended, ...spans.map((span) => span.start + span.durationMs))
  const begin = Math.min(turn.began, ...spans.map((span) => span.start))
  const whole = Math.max(1, end - begin)
  const sum = (kind: Span['kind']) => spans.filter((span) => span.kind === kind).reduce((total, span) => total + span.durationMs - waited(span), 0)
  const waits = spans.reduce((total, span) => total + waited(span), 0)
  const changed = spans.filter((span) => span.changed?.length).length
  return (
    <>
      <p className="quiet">
        {duration(whole)} in all: model {duration(sum('model'))}, tools {duration(sum('tool'))}, hooks {duration(sum('hook'))}{waits > 0 && <>, waiting for you {duration(waits)}</>}. {changed ? `${plural(changed, 'hook')} changed something.` : 'No hook changed anything.'}
      </p>
      <div className="waterfall">
        {spans.map((span, key) => (
          <div key={key}>
            <button type="button" className="span-row" aria-expanded={open === key} onClick={() => setOpen(open === key ? null : key)}>
              <span className="span-name">
                <i className={`kind kind-${span.kind}`} />
                <span className="visually-hidden">{span.kind}</span>
                <span title={[nameOf(span), span.plugin].filter(Boolean).join(' of ')}>
                  {nameOf(span)}
                  {span.plugin && <span className="quiet"> {span.plugin}</span>}
                </span>
                {Boolean(span.changed?.length) && <span className="tag">changed</span>}
                {waited(span) > 0 && <span className="tag">waited {duration(waited(span))}</span>}
                {span.state !== 'ok' && <span className={`badge ${span.state}`}>{span.state}</span>}
              </span>
              <span className="span-track">
                <i
                  className={`kind-${span.kind}${span.state === 'error' ? ' error' : ''}`}
                  style={{ left: `${((span.start - begin) / whole) * 100}%`, width: `${Math.min(100, (span.durationMs / whole) * 100)}%` }}
                />
              </span>
              <span className="span-time">{duration(span.durationMs - waited(span))}</span>
            </button>
            {open === key && <Facts span={span} />}
          </div>
        ))}
      </div>
    </>
  )
}

function Facts({ span }: { span: Span }) {
  const facts = Object.entries(span.facts)
  return (
    <div className="span-body">
      {facts.length > 0 && (
        <dl className="figures">
          {facts
            .filter(([name, value]) => typeof value !== 'object' && name !== 'waitedMs')
            .map(([name, value]) => (
              <div key={name}>
                <dt>{name}</dt>
                <dd>{String(value)}</dd>
              </div>
            ))}
        </dl>
      )}
      {facts
        .filter(([, value]) => typeof value === 'object')
        .map(([name, value]) => (
          <div key={name}>
            <h2 className="small">{name}</h2>
            <Json value={value} />
          </div>
        ))}
      {Boolean(span.changed?.length) && (
        <>
          <h2 className="small">What it changed</h2>
          <Changed places={span.changed ?? []} values={span.values ?? []} more={span.moreValues ?? 0} />
        </>
      )}
      {!facts.length && !span.changed?.length && <p className="quiet">Nothing more is known.</p>}
    </div>
  )
}
