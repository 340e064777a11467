import { useEffect, useMemo, useRef, useState } from 'react'
import type { HookCost, PluginPage, PluginState } from '../api'
import { bytes, duration, folder, plural } from '../lib/format'
import { get, post, query } from '../lib/http'
import { live, message } from '../state/live'
import { useSignal } from '../state/signal'
import { Chart, type Series } from '../ui/Chart'
import { Empty, Failed, Loading } from '../ui/states'

/** Between two looks. */
const EVERY = 2000
/** Looks that the chart shows. */
const KEPT = 150

interface Sample {
  at: number
  /** By plugin: memory in bytes, CPU in percent. */
  of: Map<string, { rss: number; cpu: number }>
}

/** The plugins of a folder: state, breakers, latency, CPU and memory. */
export function Plugins() {
  useSignal(live.list)
  const directories = live.directories()
  const [chosen, setChosen] = useState<string | null>(null)
  const [own, setOwn] = useState<string | null>(null)
  const [page, setPage] = useState<PluginPage | null>(null)
  const [error, setError] = useState<string | null>(null)
  const [samples, setSamples] = useState<Sample[]>([])
  const directory = chosen ?? directories[0] ?? own

  useEffect(() => {
    get<{ directory: string }>('/path').then((path) => setOwn(path.directory), (problem: unknown) => setError(message(problem)))
  }, [])

  const load = useRef<() => Promise<void>>(async () => {})
  useEffect(() => {
    if (!directory) return
    let current = true
    setPage(null)
    setSamples([])
    load.current = async () => {
      try {
        const found = await get<PluginPage>(`/outrigger/v1/plugin${query({ directory })}`)
        if (!current) return
        setPage(found)
        setError(null)
        const of = new Map(found.plugins.flatMap((it) => (it.usage ? [[it.id, { rss: it.usage.rss, cpu: it.usage.cpu }] as const] : [])))
        setSamples((all) => [...all.slice(1 - KEPT), { at: Date.now() / 1000, of }])
      } catch (problem) {
        if (current) setError(message(problem))
      }
    }
    void load.current()
    const timer = setInterval(() => !document.hidden && void load.current(), EVERY)
    return () => {
      current = false
      clearInterval(timer)
    }
  }, [directory])

  return (
    <div className="page">
      <header className="page-head">
        <h1>Plugins</h1>
        <label>
          <span className="visually-hidden">Folder</span>
          <select value={directory ?? ''} onChange={(event) => setChosen(event.target.value)}>
            {[...new Set([...(own ? [own] : []), ...directories])].map((it) => (
              <option key={it} value={it}>
                {folder(it)}
              </option>
            ))}
          </select>
        </label>
      </header>
      {error && !page && <Failed message={error} retry={() => void load.current()} />}
      {!error && !page && <Loading label="Asking the agent of this folder" />}
      {page && !page.plugins.length && <Empty icon="plug" title="No plugin" text="`outrigger plugin install NAME` brings one, or the list `plugin` of opencode.json." />}
      {page?.plugins.map((plugin) => (
        <Plugin key={plugin.id} plugin={plugin} others={sharing(plugin, page.plugins)} costs={page.perf.filter((cost) => cost.plugin === plugin.id)} samples={samples} directory={directory ?? ''} reload={() => void load.current()} />
      ))}
    </div>
  )
}

function reasonOf(cause: unknown): string | null {
  if (typeof cause === 'string') return cause
  if (typeof cause === 'object' && cause !== null) {
    const fields = cause as Record<string, unknown>
    for (const name of ['message', 'why', 'reason']) if (typeof fields[name] === 'string') return fields[name]
    return JSON.stringify(cause)
  }
  return null
}

/** The other plugins in the process of one. */
export function sharing(plugin: PluginState, all: PluginState[]): string[] {
  return plugin.pid ? all.filter((it) => it.pid === plugin.pid && it.id !== plugin.id).map((it) => it.id) : []
}

function Plugin({ plugin, others, costs, samples, directory, reload }: { plugin: PluginState; others: string[]; costs: HookCost[]; samples: Sample[]; directory: string; reload: () => void }) {
  const [error, setError] = useState<string | null>(null)
  const act = (what: string) =>
    void post(`/outrigger/plugin/${what}`, { id: plugin.id }, { directory }).then(
      () => {
        setError(null)
        reload()
      },
      (problem: unknown) => setError(message(problem)),
    )
  const cause = reasonOf(plugin.cause)
  const breakers = plugin.breakers ?? []
  const drawn = useMemo(() => {
    const own = samples.filter((sample) => sample.of.has(plugin.id))
    const series: Series[] = [
      { label: 'CPU', colour: '--accent', values: own.map((sample) => sample.of.get(plugin.id)?.cpu ?? null), format: (value) => `${value.toFixed(0)} %`, atLeast: 10 },
      { label: 'memory', colour: '--model', right: true, values: own.map((sample) => sample.of.get(plugin.id)?.rss ?? null), format: bytes },
    ]
    return { x: own.map((sample) => sample.at), series }
  }, [samples, plugin.id])
  return (
    <section className="panel" aria-label={plugin.id}>
      <div className="panel-head">
        <h2>{plugin.id}</h2>
        {plugin.version && <span className="quiet">{plugin.version}</span>}
        <span className={`badge ${plugin.state}`}>{plugin.state}</span>
        {plugin.stage !== plugin.state && <span className="tag">{plugin.stage}</span>}
        {breakers.map((one) => (
          <span key={one.hook} className="badge failed">
            {one.hook}: breaker {one.state}
          </span>
        ))}
        <span className="grow" />
        <div className="buttons">
          {plugin.state === 'suspended' ? (
            <button type="button" onClick={() => act('resume')}>
              Resume
            </button>
          ) : (
            <button type="button" disabled={plugin.state !== 'active'} onClick={() => act('suspend')}>
              Suspend
            </button>
          )}
          <button type="button" onClick={() => act('reload')}>
            Reload
          </button>
        </div>
      </div>
      {error && <p className="bad" role="alert">{error}</p>}
      {cause && <p className="bad">{cause}</p>}
      {plugin.quarantine && <p className="bad">In quarantine: {plugin.quarantine}</p>}
      {plugin.warnings.map((warning) => (
        <p key={warning} className="warn">
          {warning}
        </p>
      ))}
      <dl className="figures">
        <div>
          <dt>Process</dt>
          <dd>{plugin.pid ?? 'none'}</dd>
        </div>
        <div>
          <dt>Started</dt>
          <dd>{plural(plugin.generation, 'time')}</dd>
        </div>
        <div>
          <dt>Memory</dt>
          <dd>
            {plugin.usage ? bytes(plugin.usage.rss) : '–'}
            {plugin.usage && others.length > 0 && <span className="quiet" title={`with ${others.join(', ')}`}> shared by {others.length + 1}</span>}
          </dd>
        </div>
        <div>
          <dt>CPU</dt>
          <dd>{plugin.usage ? `${plugin.usage.cpu.toFixed(0)} %` : '–'}</dd>
        </div>
        <div>
          <dt>CPU time</dt>
          <dd>{plugin.own_cpu_ms !== undefined ? duration(plugin.own_cpu_ms) : plugin.usage ? duration(plugin.usage.cpu_ms) : '–'}</dd>
        </div>
        <div>
          <dt>Tools</dt>
          <dd>{plugin.tools.length ? plugin.tools.join(', ') : 'none'}</dd>
        </div>
      </dl>
      {costs.length > 0 && <Latency costs={costs} />}
      {drawn.x.length > 1 && <Chart label={`CPU and memory of ${plugin.id} since this page was opened`} x={drawn.x} series={drawn.series} time height={140} />}
    </section>
  )
}

/** Hooks by how long they take: the median inside of the time that 95 of 100 calls keep. */
function Latency({ costs }: { costs: HookCost[] }) {
  const most = Math.max(...costs.map((cost) => cost.p95_ms), 0.01)
  const sorted = costs.toSorted((a, b) => b.p95_ms - a.p95_ms)
  return (
    <figure className="chart">
      <figcaption>Time of its hooks: p50 in p95</figcaption>
      <ul className="bars">
        {sorted.map((cost) => (
          <li key={cost.hook} className="bar" title={`${cost.calls} calls, p99 ${duration(cost.p99_ms)}, longest ${duration(cost.max_ms)}`}>
            <span className="bar-name mono">{cost.hook}</span>
            <span className="bar-track" aria-hidden="true">
              <i style={{ width: `${(cost.p95_ms / most) * 100}%` }} />
              <i className="inner" style={{ width: `${(cost.p50_ms / most) * 100}%` }} />
            </span>
            <span className="bar-figures">
              {duration(cost.p50_ms)} · {duration(cost.p95_ms)} · {plural(cost.calls, 'call')}
            </span>
          </li>
        ))}
      </ul>
    </figure>
  )
}
