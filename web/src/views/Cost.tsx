import { useEffect, useMemo, useState } from 'react'
import type { Conversation, EntryPage } from '../api'
import { count, dollars, moment, plural } from '../lib/format'
import { get, query } from '../lib/http'
import { message } from '../state/live'
import { Chart } from '../ui/Chart'
import { Empty, Failed, Loading } from '../ui/states'

interface Step {
  key: string
  at: number
  cost: number
  input: number
  output: number
  cached: number
}

/** Steps that are shown at most: pages are read until there are so many. */
const MAX_STEPS = 2000
/** Messages of a page, of which only the steps are kept. */
const PAGE = 200

interface Tokens {
  input?: number
  output?: number
  reasoning?: number
  cache?: { read?: number; write?: number }
}

function stepsOf(page: EntryPage): Step[] {
  return page.entries
    .filter((entry) => entry.message.messageType === 'step')
    .map((entry) => {
      const fields = entry.message.metadata as Record<string, unknown>
      const tokens = (fields['tokens'] ?? {}) as Tokens
      const cached = tokens.cache?.read ?? 0
      return {
        key: entry.key,
        at: entry.message.timestamp,
        cost: typeof fields['cost'] === 'number' ? fields['cost'] : 0,
        input: (tokens.input ?? 0) + cached + (tokens.cache?.write ?? 0),
        output: (tokens.output ?? 0) + (tokens.reasoning ?? 0),
        cached,
      }
    })
}

/** What a conversation cost, and how full the model's context was, step by step. */
export function Cost({ info, context }: { info: Conversation; context: number }) {
  const [steps, setSteps] = useState<Step[] | null>(null)
  const [isWhole, setWhole] = useState(false)
  const [error, setError] = useState<string | null>(null)
  const [attempt, setAttempt] = useState(0)
  useEffect(() => {
    const stopped = new AbortController()
    const read = async () => {
      let all: Step[] = []
      let before: string | null = null
      do {
        const page: EntryPage = await get<EntryPage>(`/outrigger/v1/conversation/${info.id}/message${query({ limit: PAGE, before })}`, { signal: stopped.signal })
        all = [...stepsOf(page), ...all]
        before = page.next
        setSteps(all)
        setWhole(before === null)
      } while (before && all.length < MAX_STEPS)
    }
    read().catch((problem: unknown) => {
      if (!stopped.signal.aborted) setError(message(problem))
    })
    return () => stopped.abort()
  }, [info.id, info.status, attempt])

  const drawn = useMemo(() => {
    if (!steps) return null
    let total = 0
    const x = steps.map((_, n) => n + 1)
    const cost = steps.map((step) => (total += step.cost))
    return { x, cost, context: steps.map((step) => step.input + step.output) }
  }, [steps])
  const series = useMemo(
    () =>
      drawn
        ? {
            cost: [{ label: 'cost so far', colour: '--accent', values: drawn.cost, format: dollars }],
            context: [{ label: 'tokens in the context', colour: '--model', values: drawn.context, format: count }],
          }
        : null,
    [drawn],
  )
  if (error) {
    return (
      <Failed
        message={error}
        retry={() => {
          setError(null)
          setAttempt((it) => it + 1)
        }}
      />
    )
  }
  if (!steps || !drawn || !series) return <Loading label="Loading the steps" />
  const last = steps.at(-1)
  if (!last) return <Empty icon="list" title="No step yet" text="After the first answer of the model this shows what it cost and how full its context was." />
  const now = last.input + last.output
  const read = steps.reduce((sum, step) => sum + step.input, 0)
  const cached = steps.reduce((sum, step) => sum + step.cached, 0)
  return (
    <div className="page">
      <dl className="figures panel">
        <div>
          <dt>Cost</dt>
          <dd>{dollars(info.cost)}</dd>
        </div>
        <div>
          <dt>Context now</dt>
          <dd>
            {count(now)}
            {context > 0 && ` of ${count(context)} (${Math.round((now / context) * 100)} %)`}
          </dd>
        </div>
        <div>
          <dt>Steps</dt>
          <dd>
            {steps.length}
            {!isWhole && ' or more'}
          </dd>
        </div>
        <div>
          <dt>Read from the cache</dt>
          <dd>{read ? `${Math.round((cached / read) * 100)} %` : 'nothing'}</dd>
        </div>
      </dl>
      <Chart label={`Cost after each of ${plural(steps.length, 'step')}: ${dollars(drawn.cost.at(-1) ?? 0)} in the end`} x={drawn.x} series={series.cost} time={false} />
      <Chart label={`Tokens in the context at each step: ${count(now)} at the last`} x={drawn.x} series={series.context} time={false} />
      <section aria-label="Steps">
        <h2>The last steps</h2>
        <div className="table" tabIndex={0} role="region" aria-label="The last steps">
          <table className="facts">
            <thead>
              <tr>
                <th scope="col">When</th>
                <th scope="col" className="figure">Read</th>
                <th scope="col" className="figure">Cached</th>
                <th scope="col" className="figure">Written</th>
                <th scope="col" className="figure">Cost</th>
              </tr>
            </thead>
            <tbody>
              {steps
                .slice(-30)
                .toReversed()
                .map((step) => (
                  <tr key={step.key}>
                    <td>{moment(step.at)}</td>
                    <td className="figure">{count(step.input)}</td>
                    <td className="figure">{count(step.cached)}</td>
                    <td className="figure">{count(step.output)}</td>
                    <td className="figure">{dollars(step.cost)}</td>
                  </tr>
                ))}
            </tbody>
          </table>
        </div>
      </section>
    </div>
  )
}
