import { useEffect, useState } from 'react'
import { count, dollars, folder } from '../lib/format'
import { href, type Tab } from '../lib/router'
import { useCatalog } from '../state/catalog'
import { live, message } from '../state/live'
import { useSignal } from '../state/signal'
import { Composer } from '../ui/Composer'
import { Icon } from '../ui/Icon'
import { Failed, Loading } from '../ui/states'
import { Changes } from './Changes'
import { Cost } from './Cost'
import { Talk } from './Talk'
import { Trace } from './Trace'

const TABS: [Tab, string][] = [
  ['talk', 'Conversation'],
  ['changes', 'Changes'],
  ['trace', 'Trace'],
  ['cost', 'Cost'],
]

export function ConversationView({ id, tab, at }: { id: string; tab: Tab; at: string | undefined }) {
  useSignal(live.list)
  useSignal(live.status)
  const [error, setError] = useState<string | null>(null)
  const info = live.info(id)
  const open = live.open(id)
  const catalog = useCatalog(info?.directory)

  useEffect(() => {
    setError(null)
    if (!live.info(id)) live.find(id).catch((problem: unknown) => setError(message(problem)))
  }, [id])

  if (!info) {
    if (error) return <Failed message={error} retry={() => void live.find(id).then(() => setError(null), (problem: unknown) => setError(message(problem)))} />
    return <Loading label="Loading the conversation" />
  }
  const model = catalog?.models.find((it) => it.id === info.model?.id && it.provider === info.model.providerID)
  const used = info.tokens.input + info.tokens.cache.read + info.tokens.output
  return (
    <div className="conversation">
      <header className="view-head">
        <a className="icon-button back" href={href({ view: 'home' })} aria-label="All conversations">
          <Icon name="left" />
        </a>
        <div className="titles">
          <h1>{info.title || 'Untitled'}</h1>
          <p>
            {info.parentID && (
              <>
                <a href={href({ view: 'conversation', id: info.parentID, tab: 'talk' })}>subagent of the conversation above</a> ·{' '}
              </>
            )}
            <span title={info.directory}>{folder(info.directory)}</span>
            {info.agent && <> · {info.agent}</>}
            {info.model && <> · {model?.name ?? info.model.id}</>}
            {info.origin && (
              <>
                {' '}
                · imported from {info.origin.program} {info.origin.version}
              </>
            )}
          </p>
        </div>
        <span className="meter" title="Cost of this conversation">
          {used > 0 && `${dollars(info.cost)} · ${count(used)} tokens`}
        </span>
      </header>
      <nav className="tabs" aria-label="Views of the conversation">
        {TABS.map(([name, label]) => (
          <a key={name} href={href({ view: 'conversation', id, tab: name })} aria-current={tab === name ? 'page' : undefined}>
            {label}
          </a>
        ))}
      </nav>
      {tab === 'talk' && <Talk key={id} open={open} info={info} at={at} />}
      {tab === 'changes' && <Changes key={id} info={info} />}
      {tab === 'trace' && <Trace key={id} info={info} />}
      {tab === 'cost' && <Cost key={id} info={info} context={model?.context ?? 0} />}
      {(tab === 'talk' || tab === 'changes') && <Composer info={info} isOffline={live.link === 'lost' || live.link === 'stranger'} />}
    </div>
  )
}
