import { useEffect, useRef, useState } from 'react'
import type { Conversation } from '../api'
import { ago, folder } from '../lib/format'
import { visible } from '../lib/permission'
import { href, type Route } from '../lib/router'
import { setTheme, theme, type Theme } from '../lib/theme'
import { live } from '../state/live'
import { type Found, useSearch } from '../state/search'
import { useSignal } from '../state/signal'
import { Icon } from './Icon'

/** All conversations: what waits for a person on top. */
export function Sidebar({ route, help }: { route: Route; help: () => void }) {
  useSignal(live.list)
  const [search, setSearch] = useState('')
  const [now, setNow] = useState(Date.now())
  const end = useRef<HTMLDivElement>(null)
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 30_000)
    return () => clearInterval(timer)
  }, [])
  useEffect(() => {
    const timer = setTimeout(() => {
      if (search !== live.search) void live.load(search)
    }, 200)
    return () => clearTimeout(timer)
  }, [search])
  useEffect(() => {
    if (!end.current) return
    const observer = new IntersectionObserver((seen) => {
      if (seen.some((one) => one.isIntersecting)) void live.more().catch(() => undefined)
    })
    observer.observe(end.current)
    return () => observer.disconnect()
  }, [live.next])

  const found = useSearch(search)
  const all = live.conversations()
  const waiting = all.filter((info) => live.waitingOf(info.id).length)
  const running = all.filter((info) => !waiting.includes(info) && info.status !== 'idle')
  const rest = all.filter((info) => !waiting.includes(info) && !running.includes(info))
  const alike = sameTitle(all)
  const current = route.view === 'conversation' ? route.id : null
  const shownCurrent = current ? (live.info(current)?.task ?? current) : null
  const list = (label: string, infos: Conversation[], kind: string) =>
    infos.length > 0 && (
      <div role="group" aria-label={label}>
        <h2>{label}</h2>
        <ul>
          {infos.map((info) => (
            <Item key={info.id} info={info} kind={kind} now={now} isCurrent={info.id === shownCurrent} isAlike={alike.has(info.id)} />
          ))}
        </ul>
      </div>
    )
  return (
    <aside className="sidebar" aria-label="Sidebar">
      <div className="sidebar-head">
        <a className="brand" href={href({ view: 'home' })}>
          <svg viewBox="0 0 32 32" aria-hidden="true">
            <rect width="32" height="32" rx="8" />
            <path d="M6 19c4 4 16 4 20 0M11 8v11M11 8l9 8h-9" />
          </svg>
          Outrigger
        </a>
        <a className="button primary" href={href({ view: 'new' })}>
          <Icon name="plus" /> New
        </a>
      </div>
      <label className="search">
        <Icon name="search" />
        <span className="visually-hidden">Search conversations</span>
        <input id="search" type="search" value={search} placeholder="Search" onChange={(event) => setSearch(event.target.value)} />
      </label>
      <nav className="sessions" aria-label="Conversations" tabIndex={-1}>
        {list('Waiting for you', waiting, 'waits')}
        {list('Running', running, 'runs')}
        {list(waiting.length || running.length ? 'Earlier' : 'Recent', rest, 'rests')}
        <Hits found={found} route={route} />
        {live.loaded && !all.length && !search && <p className="quiet pad">No conversation yet.</p>}
        {live.loaded && !all.length && search && !found.hits.length && !found.searching && !found.error && <p className="quiet pad">Nothing has that, neither titles nor messages.</p>}
        {!live.loaded && !live.listError && <Skeleton />}
        {live.listError && !live.loaded && <p className="bad pad">{live.listError}</p>}
        {live.next && <div ref={end} className="pad quiet">Loading more …</div>}
      </nav>
      <div className="sidebar-foot">
        <a href={href({ view: 'plugins' })} aria-current={route.view === 'plugins' ? 'page' : undefined}>
          <Icon name="plug" /> Plugins
        </a>
        <a href={href({ view: 'audit', session: null })} aria-current={route.view === 'audit' ? 'page' : undefined}>
          <Icon name="shield" /> Audit
        </a>
        <span className="grow" />
        <button type="button" className="icon-button" aria-label="Keys" onClick={help}>
          <Icon name="keyboard" />
        </button>
        <ThemeButton />
      </div>
    </aside>
  )
}

/** The last words before what was found, so that it is in view. */
function lead(before: string): string {
  const line = before.trimStart()
  return line.length <= 40 ? line : `… ${line.slice(-36).replace(/^\S*\s+/, '')}`
}

/** What the messages of all conversations say. */
function Hits({ found, route }: { found: Found; route: Route }) {
  const { hits, more, searching, error } = found
  if (!hits.length && !searching && !error) return null
  return (
    <div role="group" aria-label="In messages" className="hits">
      <h2>In messages</h2>
      <ul>
        {hits.map((hit) => (
          <li key={`${hit.conversation} ${hit.key}`}>
            <a
              className="item hit"
              href={href({ view: 'conversation', id: hit.conversation, tab: 'talk', at: hit.key })}
              aria-current={route.view === 'conversation' && route.at === hit.key ? 'page' : undefined}
            >
              <span className="hit-text">
                {lead(hit.before)}
                <mark>{hit.found}</mark>
                {hit.after}
              </span>
              <span className="item-more">
                <span>{hit.title || 'Untitled'}</span>
                <span>{hit.kind === 'text' ? folder(hit.directory) : hit.kind}</span>
              </span>
            </a>
          </li>
        ))}
      </ul>
      {searching && <p className="quiet pad" role="status">Looking through messages …</p>}
      {error && <p className="bad pad">{error}</p>}
      {more && (
        <button type="button" className="link pad" onClick={more}>
          Look further back
        </button>
      )}
    </div>
  )
}

/** Those that have a title with another one. */
export function sameTitle(all: Pick<Conversation, 'id' | 'title'>[]): Set<string> {
  const first = new Map<string, string>()
  const alike = new Set<string>()
  for (const { id, title } of all) {
    const known = first.get(title)
    if (known === undefined) first.set(title, id)
    else alike.add(known).add(id)
  }
  return alike
}

/** `isAlike`: another one has its title, so that how it began is shown as well. */
function Item({ info, kind, now, isCurrent, isAlike }: { info: Conversation; kind: string; now: number; isCurrent: boolean; isAlike: boolean }) {
  const asks = live.waitingOf(info.id)[0]
  const what = asks?.type === 'permission' ? visible(asks.shown.title) : asks ? asks.request.questions[0]?.header : null
  return (
    <li>
      <a className={`item ${kind}`} href={href({ view: 'conversation', id: info.id, tab: 'talk' })} aria-current={isCurrent ? 'page' : undefined}>
        <span className="item-state" aria-hidden="true">
          {kind === 'runs' ? <span className="spinner" /> : <span className="dot" />}
        </span>
        <span className="item-title" title={info.title || undefined}>{info.title || 'Untitled'}</span>
        {isAlike && info.opening && (
          <span className="item-opening" title={info.opening}>
            {info.opening}
          </span>
        )}
        <span className="item-more">
          {what ? <em>{what}</em> : <span>{folder(info.directory)}</span>}
          <time dateTime={new Date(info.time.updated).toISOString()}>{ago(info.time.updated, now)}</time>
        </span>
      </a>
    </li>
  )
}

export function Skeleton() {
  return (
    <div className="skeletons" role="status" aria-label="Loading" aria-busy="true">
      {[70, 50, 62, 44].map((width) => (
        <span key={width} style={{ width: `${width}%` }} />
      ))}
    </div>
  )
}

const NEXT: Record<Theme, Theme> = { system: 'light', light: 'dark', dark: 'system' }
const NAMES: Record<Theme, string> = { system: 'as the system', light: 'light', dark: 'dark' }

function ThemeButton() {
  const [shown, setShown] = useState(theme())
  return (
    <button
      type="button"
      className="icon-button"
      aria-label={`Colours: ${NAMES[shown]}`}
      title={`Colours: ${NAMES[shown]}`}
      onClick={() => {
        const next = NEXT[shown]
        setTheme(next)
        setShown(next)
      }}
    >
      <Icon name={shown === 'system' ? 'system' : shown === 'light' ? 'sun' : 'moon'} />
    </button>
  )
}
