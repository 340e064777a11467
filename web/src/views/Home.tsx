import type { Conversation } from '../api'
import { dollars, folder, plural } from '../lib/format'
import { href } from '../lib/router'
import { useCatalog } from '../state/catalog'
import { live } from '../state/live'
import { useSignal } from '../state/signal'
import { Icon } from '../ui/Icon'
import { Empty, Failed, Loading } from '../ui/states'
import { WaitingCard } from '../ui/Waiting'

/** The model that a conversation used last, by its name. */
function Model({ info }: { info: Conversation }) {
  const models = useCatalog(info.directory)?.models
  const model = models?.find((it) => it.id === info.model?.id && it.provider === info.model.providerID)
  return model?.name ?? info.model?.id ?? 'model'
}

/** What needs a person now, and what runs. */
export function Home() {
  useSignal(live.list)
  if (!live.loaded) return live.listError ? <Failed message={live.listError} retry={() => void live.load()} /> : <Loading label="Loading" />
  const all = live.conversations()
  const asked = live.waiting()
  const running = all.filter((info) => info.status !== 'idle' && !live.waitingOf(info.id).length)
  if (!all.length && !live.search) {
    return (
      <>
        <h1 className="visually-hidden">Overview</h1>
      <Empty icon="comment" title="No conversation yet" text="Begin one here, with outrigger in a terminal, or in your editor. All of them appear on this page.">
        <a className="button primary" href={href({ view: 'new' })}>
          <Icon name="plus" /> Begin a conversation
        </a>
      </Empty>
      </>
    )
  }
  const cost = all.reduce((sum, info) => sum + info.cost, 0)
  return (
    <div className="page">
      <header className="page-head">
        <h1>Overview</h1>
        <p className="quiet">
          {plural(all.length, 'conversation')}{live.search && ` with “${live.search}” in the title`} in {plural(new Set(all.map((info) => info.directory)).size, 'project')} · {dollars(cost)}
        </p>
      </header>
      <section aria-labelledby="waiting">
        <h2 id="waiting">Waiting for you</h2>
        {asked.length === 0 && <p className="calm"><Icon name="check" /> Nothing waits for you.</p>}
        {asked.map((one) => {
          const of = live.info(one.request.sessionID)
          const root = of ? (live.info(of.task) ?? of) : undefined
          return (
            <article key={one.request.id} className="asks">
              <p className="asks-of">
                <a href={href({ view: 'conversation', id: root?.id ?? one.request.sessionID, tab: 'talk' })}>{root?.title ?? 'Conversation'}</a>
                {root && <span className="quiet"> in {folder(root.directory)}</span>}
              </p>
              <WaitingCard waiting={one} directory={of?.directory ?? ''} />
            </article>
          )
        })}
      </section>
      <section aria-labelledby="running">
        <h2 id="running">Running</h2>
        {running.length === 0 && <p className="calm">{asked.length ? 'No other agent is at work.' : 'No agent is at work.'}</p>}
        <div className="grid">
          {running.map((info) => (
            <a key={info.id} className="tile" href={href({ view: 'conversation', id: info.id, tab: 'talk' })}>
              <strong>{info.title || 'Untitled'}</strong>
              <span className="quiet">
                {folder(info.directory)} · {info.agent ?? 'agent'} · <Model info={info} />
              </span>
              <span className="tile-state">
                <span className="spinner" /> {info.status === 'retry' ? 'asks the provider again' : 'works'}
              </span>
            </a>
          ))}
        </div>
      </section>
    </div>
  )
}
